package main

import "strings"

// policy is what the page may do: load its own files and run its own wasm,
// nothing else. No other origin can be reached.
var policy = []string{
	"default-src 'none'",
	"script-src 'self' 'wasm-unsafe-eval'",
	"style-src 'self'",
	"img-src 'self' data: blob:",
	"font-src 'self'",
	"connect-src 'self'",
	"worker-src 'self'",
	"manifest-src 'self'",
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
}

// metaPolicy is the policy as a meta element can say it, for hosts that send
// no headers of ours: frame-ancestors has no effect there.
func metaPolicy() string {
	return strings.Join(policy[:len(policy)-1], "; ")
}

// writeHeaders writes the _headers file that static hosts read.
func (b *build) writeHeaders() error {
	lines := []string{
		"/*",
		"  Content-Security-Policy: " + strings.Join(policy, "; "),
		"  X-Content-Type-Options: nosniff",
		"  Referrer-Policy: no-referrer",
		"  Cross-Origin-Opener-Policy: same-origin",
		"  Cross-Origin-Resource-Policy: same-origin",
		"  Permissions-Policy: camera=(), geolocation=(), microphone=()",
		"  Cache-Control: no-cache",
		"",
	}
	return b.write("_headers", []byte(strings.Join(lines, "\n")))
}
