// Package policy defines the content security policy of the page and the HTTP headers of its files,
// for all ways of serving the page.
//
// The page may load files only from its own origin, and may connect only to its own origin. The
// command's server and the Cloudflare worker set these headers; static hosts read the headers from
// the file _headers. For hosts that cannot send headers, the page has a meta element ([Meta]); but
// only a header ([Content]) can prevent other sites from showing the page in a frame. The single
// file has no trusted origin, so its policy ([Single]) allows no connections.
package policy

import "strings"

// Content is the content security policy that is sent as a header.
const Content = Meta + "; frame-ancestors 'none'"

// Meta is the part of [Content] that is allowed in a meta element.
const Meta = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'"

// Single returns the policy of a page that consists of one file. The policy allows the scripts and
// styles with the given hashes ('sha256-…'), workers from the page's own memory, and no
// connections.
func Single(scripts, styles []string) string {
	return "default-src 'none'; script-src " + strings.Join(scripts, " ") + " 'wasm-unsafe-eval'; style-src " + strings.Join(styles, " ") +
		"; img-src data: blob:; connect-src 'none'; worker-src blob:; base-uri 'none'; form-action 'none'"
}

// Header is an HTTP header.
type Header struct{ Name, Value string }

// Headers returns the headers of every response.
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

// Hashed is the folder that contains the files whose names contain a hash of their content.
const Hashed = "assets/"

// These values of Cache-Control determine how long a browser may use a file without asking the
// server again.
const (
	// Forever is used for files below [Hashed], whose content never changes.
	Forever = "public, max-age=31536000, immutable"
	// Ask is used for all other files: the browser asks every time whether they have changed.
	Ask = "no-cache"
)

// Cache returns the Cache-Control header for the file at a path, which must not begin with a slash.
func Cache(path string) string {
	if strings.HasPrefix(path, Hashed) {
		return Forever
	}
	return Ask
}
