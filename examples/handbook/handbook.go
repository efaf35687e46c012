// Package handbook is the demo corpus: the documentation of Tollhaven, a
// secrets and access manager that does not exist, and a conversation about it.
//
// Many pages have sections of the same kind ("Renewing", "When it expires",
// "Limits"), so a follow-up such as "What happens when it expires?" fits
// several pages equally well when it is read alone. Only the conversation says
// which one is meant.
package handbook

import "embed"

// Docs holds the pages, as docs/NAME.md. Every page is Markdown with one
// top-level heading; links between pages are relative to docs.
//
//go:embed docs/*.md
var Docs embed.FS

// Turn is a question of the demo conversation and the section that answers it.
type Turn struct {
	Question string // what the user asks
	Page     string // file name of the page in docs, such as "leases.md"
	Heading  string // text of the heading of the section in that page
}

// Conversation is the demo conversation: a clear question, two follow-ups with
// a pronoun, an ambiguous follow-up, a switch to another subject, and a
// follow-up with a pronoun there.
var Conversation = []Turn{
	{"How long does an access token last?", "access-tokens.md", "Lifetime"},
	{"How do I renew it?", "access-tokens.md", "Renewing"},
	{"What happens when it expires?", "access-tokens.md", "When it expires"},
	{"Is there a limit on how many I can have?", "access-tokens.md", "Limits"},
	{"How often does the leader take a snapshot?", "snapshots.md", "Schedule"},
	{"And how long is it kept?", "snapshots.md", "Retention"},
}
