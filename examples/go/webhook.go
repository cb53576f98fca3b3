//go:build ignore

// Receives webhooks: PORT=8080 go run webhook.go, behind a proxy that has the certificate (webhooks are sent by HTTPS only).
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute
	kept      = 25 * time.Hour
	mostBytes = 1_000_000
)

var (
	secret = []byte(os.Getenv("SVC_WEBHOOK_SECRET")) // the 64 characters as they are: they are not encoded
	lock   sync.Mutex
	seen   = map[string]time.Time{} // event_id: when; where there are several processes: a table with a unique key
)

type event struct {
	ID   string         `json:"event_id"`
	Type string         `json:"event"`
	Data map[string]any `json:"data"`
}

// isGenuine is true for a body, as it came, that the holder of the secret signed within the last five minutes.
func isGenuine(header http.Header, body []byte) bool {
	timestamp := header.Get("X-Svc-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age > tolerance || age < -tolerance {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
	// For a while after the secret was rotated, the second header is signed with the one before.
	return hmac.Equal([]byte(header.Get("X-Svc-Signature")), expected) ||
		hmac.Equal([]byte(header.Get("X-Svc-Signature-Previous")), expected)
}

// isNew is false where the event was here before: each may come more than once.
func isNew(id string) bool {
	lock.Lock()
	defer lock.Unlock()
	if _, before := seen[id]; before {
		return false
	}
	seen[id] = time.Now()
	return true
}

func forgetOld() {
	for range time.Tick(time.Hour) {
		lock.Lock()
		for id, at := range seen {
			if time.Since(at) > kept {
				delete(seen, id)
			}
		}
		lock.Unlock()
	}
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil || r.Method != http.MethodPost || !isGenuine(r.Header, body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if isNew(e.ID) {
		go handle(e) // first the answer, then the work: there are 10 seconds for it
	}
}

func handle(e event) {
	fmt.Println(e.ID, e.Type, e.Data["to"])
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	if len(secret) == 0 {
		log.Fatal("SVC_WEBHOOK_SECRET is not set")
	}
	go forgetOld()
	server := &http.Server{Addr: "127.0.0.1:" + port, Handler: http.HandlerFunc(receive), ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
