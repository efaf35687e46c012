package graphbuild

import "strings"

// frontMatter returns the length of the YAML ("---") or TOML ("+++") block
// that text begins with, 0 when there is none, and the title it gives.
//
// A block counts only if it is closed and its first line that is neither blank
// nor a comment sets a key; a rule at the top of a page does not hide the page.
func frontMatter(text string) (length int, title string) {
	var sign string
	switch first, _, _ := strings.Cut(text, "\n"); strings.TrimRight(first, " \t\r") {
	case "---":
		sign = ":"
	case "+++":
		sign = "="
	default:
		return 0, ""
	}
	begun := false
	for at := lineEnd(text, 0); at < len(text); {
		end := lineEnd(text, at)
		line := strings.TrimRight(text[at:end], " \t\r\n")
		at = end
		switch {
		case sign == ":" && (line == "---" || line == "..."), sign == "=" && line == "+++":
			if !begun {
				return 0, ""
			}
			return at, title
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		}
		key, value, ok := strings.Cut(line, sign)
		key = strings.TrimRight(key, " \t")
		if !begun && (!ok || key == "" || strings.ContainsAny(key, " \t")) {
			return 0, ""
		}
		begun = true
		if ok && key == "title" && title == "" {
			title = unquote(strings.TrimSpace(value))
		}
	}
	return 0, ""
}

func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// lineEnd returns where the line that at is in ends, its line feed included.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}
