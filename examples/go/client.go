// One request to the API, tried again as the API asks for. Go 1.18 or newer, no modules.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math"
	mathrand "math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	mostRetries = 5
	ceiling     = 30 * time.Second
	mostBytes   = 64 << 20
)

// SvcError is a refusal: branch on Code, show Detail, quote RequestID.
type SvcError struct {
	Status    int    `json:"-"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	Errors    []struct {
		Field string `json:"field"`
		Issue string `json:"issue"`
	} `json:"errors"`
}

func (e *SvcError) Error() string {
	return fmt.Sprintf("%d %s: %s (%s)", e.Status, e.Code, e.Detail, e.RequestID)
}

// Client asks the server at BaseURL with an API key.
type Client struct {
	BaseURL, APIKey string
	Base            time.Duration // the first delay between two tries
	HTTP            *http.Client
}

// NewClient reads SVC_BASE_URL, SVC_API_KEY and, for a server with a certificate of its own, SVC_CA_FILE.
func NewClient() (*Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if file := os.Getenv("SVC_CA_FILE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		roots.AppendCertsFromPEM(pem)
	}
	base := time.Second
	if ms, err := strconv.Atoi(os.Getenv("SVC_RETRY_BASE_MS")); err == nil {
		base = time.Duration(ms) * time.Millisecond
	}
	return &Client{
		BaseURL: os.Getenv("SVC_BASE_URL"),
		APIKey:  os.Getenv("SVC_API_KEY"),
		Base:    base,
		HTTP: &http.Client{
			Timeout:       30 * time.Second,
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Do asks and reads the answer into out; a refusal is a *SvcError. The Idempotency-Key is the same on every try, so
// that what is sent twice is done once. Keep it with your job, to be safe across a restart too.
func (c *Client) Do(method, path, idempotencyKey string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	for retry := 0; ; retry++ {
		status, header, text, err := c.try(method, path, idempotencyKey, body)
		passing := err != nil || status == 429 || status >= 500 // no answer: nobody knows whether it was done
		switch {
		case err == nil && status >= 200 && status < 300:
			if len(text) == 0 {
				return nil
			}
			return json.Unmarshal(text, out)
		case passing && retry < mostRetries:
			time.Sleep(c.wait(status, header, retry))
		case err != nil:
			return err
		default:
			refusal := &SvcError{Code: "unknown", Detail: string(text)}
			_ = json.Unmarshal(text, refusal)
			refusal.Status = status
			return refusal
		}
	}
}

func (c *Client) try(method, path, idempotencyKey string, body []byte) (int, http.Header, []byte, error) {
	request, err := http.NewRequest(method, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.APIKey)
	request.Header.Set("Accept", "application/json, application/problem+json") // one form for all errors
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	return response.StatusCode, response.Header, text, err
}

// wait is what the server asks for with 429 and 503; else a growing delay with jitter.
func (c *Client) wait(status int, header http.Header, retry int) time.Duration {
	if status == 429 || status == 503 {
		if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds > 0 {
			return time.Duration(seconds) * time.Second
		}
	}
	jitter := mathrand.New(mathrand.NewSource(time.Now().UnixNano())).Float64()
	delay := float64(c.Base) * math.Pow(2, float64(retry)) * (1 + jitter)
	return time.Duration(math.Min(float64(ceiling), delay))
}

// NewKey makes an Idempotency-Key, a UUID v4.
func NewKey() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err)
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
