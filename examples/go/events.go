//go:build ignore

// Prints the events, oldest first, one a line: go run events.go client.go [--follow] [CURSOR]
// The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"
)

func main() {
	follow := flag.Bool("follow", false, "wait for what happens later")
	flag.Parse()
	cursor := flag.Arg(0)
	client, err := NewClient()
	for err == nil {
		query := url.Values{"limit": {"1000"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Data       []json.RawMessage `json:"data"`
			HasMore    bool              `json:"has_more"`
			NextCursor string            `json:"next_cursor"`
		}
		if err = client.Do("GET", "/v1/events?"+query.Encode(), "", nil, &page); err != nil {
			break
		}
		for _, event := range page.Data {
			fmt.Println(string(event))
		}
		if page.NextCursor != "" { // the last page has one too: what happens later comes behind it
			cursor = page.NextCursor
		}
		if page.HasMore {
			continue
		}
		if !*follow {
			fmt.Fprintln(os.Stderr, cursor)
			return
		}
		time.Sleep(2 * time.Second)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
