package main

import (
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// writeHeaders writes the _headers file that static hosts read.
func (b *build) writeHeaders() error {
	lines := []string{
		"/*",
		"  Content-Security-Policy: " + policy.Content,
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
