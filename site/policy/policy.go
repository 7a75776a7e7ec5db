// Package policy defines the content security policy of the page and the headers of its files, for all ways
// to serve it.
//
// The page may load and connect to nothing but its own origin. The command's server and the Cloudflare
// worker set headers, static hosts read them from _headers. For hosts without headers the page has a meta
// element ([Meta]); only a header can forbid frames around the page ([Content]). For the single file, which
// has no trusted origin, [Single] allows even less.
package policy

import "strings"

// Content is the content security policy as a header.
const Content = Meta + "; frame-ancestors 'none'"

// Meta is the part of [Content] that a meta element may carry.
const Meta = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'"

// Single is the policy of a page that is one file. It allows the scripts and styles with the given hashes
// ('sha256-…'), workers from its own memory, and no connections.
func Single(scripts, styles []string) string {
	return "default-src 'none'; script-src " + strings.Join(scripts, " ") + " 'wasm-unsafe-eval'; style-src " + strings.Join(styles, " ") +
		"; img-src data: blob:; connect-src 'none'; worker-src blob:; base-uri 'none'; form-action 'none'"
}

// Header is a header of every answer.
type Header struct{ Name, Value string }

// Headers are the headers of every answer.
func Headers() []Header {
	return []Header{
		{"Content-Security-Policy", Content},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
	}
}

// Hashed is the folder of the files with the hashes of their contents in their names.
const Hashed = "assets/"

// How long a browser may use a file without asking again.
const (
	// Forever is for files below [Hashed], whose content never changes.
	Forever = "public, max-age=31536000, immutable"
	// Ask is for all others: the browser asks every time whether they have changed.
	Ask = "no-cache"
)

// Cache returns the Cache-Control of the file at a path, without a leading slash.
func Cache(path string) string {
	if strings.HasPrefix(path, Hashed) {
		return Forever
	}
	return Ask
}
