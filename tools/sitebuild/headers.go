package main

import (
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// writeHeaders writes the _headers file for static hosts. If several rules set one header, some hosts send
// all values, so the rule for all files does not limit caching.
func (b *build) writeHeaders() error {
	var text strings.Builder
	rule := func(pattern string, headers ...policy.Header) {
		text.WriteString(pattern + "\n")
		for _, h := range headers {
			text.WriteString("  " + h.Name + ": " + h.Value + "\n")
		}
	}
	cache := func(how string) policy.Header { return policy.Header{Name: "Cache-Control", Value: how} }
	rule("/*", policy.Headers()...)
	rule("/"+policy.Hashed+"*", cache(policy.Forever))
	for _, path := range []string{"", "index.html", "sw.js", "precache.js", "demos/*"} {
		rule("/"+path, cache(policy.Ask))
	}
	return b.write("_headers", []byte(text.String()))
}

// writeIgnored writes which files Cloudflare, which compresses itself, does not need.
func (b *build) writeIgnored() error {
	return b.write(".assetsignore", []byte("*.br\n*.gz\n.gitkeep\n"))
}
