package state

import (
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// Mangled returns the mangled names of the C++ and Rust functions in a profile.
func Mangled(p *profile.Profile) (names []string) {
	known := map[string]bool{}
	add := func(name string) {
		short := strings.TrimLeft(name, "_")
		if !known[name] && name != short && (strings.HasPrefix(short, "Z") || strings.HasPrefix(short, "R") || strings.HasPrefix(short, "GLOBAL_")) {
			known[name] = true
			names = append(names, name)
		}
	}
	if p == nil {
		return nil
	}
	if p.Sites != nil {
		for i := range p.Sites.Code {
			add(p.Sites.Code[i].Function)
		}
		for i := range p.Sites.Data {
			add(p.Sites.Data[i].Function)
		}
	}
	if c := p.Counters; c != nil {
		for i := range c.Functions {
			add(c.Functions[i].Name)
		}
		for _, callee := range c.Tallied(profile.Callees) {
			add(callee.Name)
		}
	}
	return names
}
