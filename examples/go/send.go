//go:build ignore

// Sends a message: go run send.go client.go FROM TO
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	client, err := NewClient()
	var message struct {
		ID string `json:"id"`
	}
	if err == nil {
		err = client.Do("POST", "/v1/messages", NewKey(), map[string]any{
			"from":    os.Args[1],
			"to":      []string{os.Args[2]},
			"subject": "Your order",
			"text":    "It is on its way.",
			"html":    "<p>It is on its way.</p>",
			"tags":    []string{"order"},
		}, &message)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		var refusal *SvcError
		if errors.As(err, &refusal) {
			for _, problem := range refusal.Errors {
				fmt.Fprintf(os.Stderr, "  %s: %s\n", problem.Field, problem.Issue)
			}
		}
		os.Exit(1)
	}
	fmt.Println(message.ID)
}
