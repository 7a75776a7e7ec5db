package policy

import (
	"strings"
	"testing"
)

// allowed reports whether a directive may contain the given source.
func allowed(directive, source string) bool {
	switch source {
	case "'none'", "'self'":
		return true
	case "'wasm-unsafe-eval'":
		return directive == "script-src"
	case "data:":
		return directive == "img-src"
	case "blob:": // an object in the page's memory
		return directive == "img-src" || directive == "worker-src"
	}
	return strings.HasPrefix(source, "'sha256-") && (directive == "script-src" || directive == "style-src")
}

func TestPoliciesAllowOnlyTheirOrigin(t *testing.T) {
	for _, p := range []string{Content, Meta, Single([]string{"'sha256-a'"}, []string{"'sha256-b'"})} {
		if !strings.HasPrefix(p, "default-src 'none'; ") {
			t.Errorf("%s does not begin with default-src 'none'", p)
		}
		for _, directive := range strings.Split(p, "; ") {
			name, sources, _ := strings.Cut(directive, " ")
			for _, source := range strings.Fields(sources) {
				if !allowed(name, source) {
					t.Errorf("%s allows %s", name, source)
				}
			}
		}
	}
	if allowed("connect-src", "https:") || allowed("script-src", "'unsafe-inline'") || allowed("connect-src", "blob:") {
		t.Error("allowed accepts a source outside the page, want false")
	}
}

func TestMetaPolicyIsAllowed(t *testing.T) {
	for _, directive := range []string{"frame-ancestors", "report-uri", "sandbox"} {
		if strings.Contains(Meta, directive) || strings.Contains(Single(nil, nil), directive) {
			t.Errorf("%s has no effect in a meta element", directive)
		}
	}
	if !strings.Contains(Content, "frame-ancestors 'none'") {
		t.Error("the header allows other sites to show the page in a frame")
	}
}

func TestSingleFileAllowsNoConnections(t *testing.T) {
	if p := Single(nil, nil); !strings.Contains(p, "connect-src 'none'") || strings.Contains(p, "'self'") {
		t.Errorf("%s", p)
	}
}

func TestCacheControl(t *testing.T) {
	for path, want := range map[string]string{"assets/app.0a1b.wasm": Forever, "index.html": Ask, "demos/ring.sgt": Ask, "sw.js": Ask} {
		if got := Cache(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
