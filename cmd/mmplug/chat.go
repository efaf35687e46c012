package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// maxLine is the longest line that chat reads, in bytes.
const maxLine = 1 << 20

func newChat(std stdio) *cobra.Command {
	var flags conversationFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "chat --index IDX",
		Short: "Hold a conversation, one question a line",
		Long: `Read questions from standard input, one a line, and print the passage for each as
it comes. "/trace" prints why each passage was chosen, "/quit" or the end of the
input ends.`,
		Example: `  mmplug chat --index docs.idx
  mmplug chat --index docs.idx --json < questions.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := converse(cmd.Context(), std, flags)
			if err != nil {
				return err
			}
			defer c.close()
			if err := chat(cmd.Context(), c, asJSON); err != nil {
				return err
			}
			return c.writeHTML(cmd.Context())
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer to every question as one line of JSON")
	return cmd
}

// chat answers the lines of standard input until it ends.
func chat(ctx context.Context, c *conversation, asJSON bool) error {
	in := isTerminal(c.std.in)
	out := isTerminal(c.std.out)
	prompt := func() {
		if in && out {
			fmt.Fprint(c.std.out, "> ") //nolint:errcheck // only a prompt
		}
	}
	if in && out {
		fmt.Fprintln(c.std.out, `ask away; "/trace" says why, "/quit" ends`) //nolint:errcheck // only a greeting
	}
	for prompt(); ; prompt() {
		line, err := nextLine(ctx, c.lines())
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch question := strings.TrimSpace(line); question {
		case "":
		case "/quit":
			return nil
		case "/trace":
			if _, err := fmt.Fprintln(c.std.out, c.Trace().Text()); err != nil {
				return err
			}
		default:
			r, err := c.ask(ctx, question)
			if err != nil {
				return err
			}
			if !asJSON {
				err = c.print(question, r, 3)
			} else if t, terr := c.turn(ctx, question, r); terr != nil {
				err = terr
			} else {
				enc := json.NewEncoder(c.std.out)
				enc.SetEscapeHTML(false)
				err = enc.Encode(t)
			}
			if err != nil {
				return err
			}
		}
	}
}

// line is a line of input, or why there is none.
type line struct {
	text string
	err  error
}

// lines reads standard input in the background, so that an interrupt ends a
// chat that waits for a line.
func (c *conversation) lines() <-chan line {
	if c.input == nil {
		c.input = make(chan line)
		go func() {
			scanner := bufio.NewScanner(c.std.in)
			scanner.Buffer(nil, maxLine)
			for scanner.Scan() {
				c.input <- line{text: scanner.Text()}
			}
			err := scanner.Err()
			switch {
			case err == nil:
				err = io.EOF
			case errors.Is(err, bufio.ErrTooLong):
				err = fmt.Errorf("standard input: a line is longer than %d bytes", maxLine)
			}
			c.input <- line{err: err}
		}()
	}
	return c.input
}

func nextLine(ctx context.Context, lines <-chan line) (string, error) {
	select {
	case l := <-lines:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
