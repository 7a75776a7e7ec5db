// Package policy says what the page may do and what an answer that carries a
// file of it says besides: one list, which every way of serving it repeats.
//
// The page may load and connect to nothing but its own origin. Hosts say so by
// headers: the command's server sets them, static hosts read them from _headers,
// the Cloudflare worker sets them where it answers itself. A host that sends no
// headers needs no more than the page's own meta element ([Meta]); there a frame
// around the page cannot be forbidden, which only a header can ([Content]). In the
// single file, which has no origin that could be trusted, [Single] allows even less.
package policy

import "strings"

// Content is the content security policy as a header.
const Content = Meta + "; frame-ancestors 'none'"

// Meta is the part of [Content] that a meta element may carry.
const Meta = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'"

// Single is the policy of a page that is one file. It may run the scripts and use
// the styles whose hashes ('sha256-…') are given, start workers from its own
// memory, and connect to nothing.
func Single(scripts, styles []string) string {
	return "default-src 'none'; script-src " + strings.Join(scripts, " ") + " 'wasm-unsafe-eval'; style-src " + strings.Join(styles, " ") +
		"; img-src data: blob:; connect-src 'none'; worker-src blob:; base-uri 'none'; form-action 'none'"
}

// Header is a header of every answer.
type Header struct{ Name, Value string }

// Headers are those of every answer, whatever it holds.
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

// Hashed is the folder of the files whose names have the hashes of their contents.
const Hashed = "assets/"

// How long a browser may use a file without asking again.
const (
	// Forever is for files below [Hashed]: under such a name there is never
	// another content. A page that runs finds all of its version there, even when
	// the host has a newer one.
	Forever = "public, max-age=31536000, immutable"
	// Ask is for all others: the browser asks every time, and the answer is almost
	// always that nothing has changed.
	Ask = "no-cache"
)

// Cache gives the Cache-Control of the file at a path, without a leading slash.
func Cache(path string) string {
	if strings.HasPrefix(path, Hashed) {
		return Forever
	}
	return Ask
}
