package answers

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestShortNames(t *testing.T) {
	for name, want := range map[string]string{
		"main":                                        "main",
		"void sort<int*>(int*, int*, int*, int)":      "void sort<int*>(…)",
		"std::map<int, long>::operator[](int)":        "std::map<int, long>::operator[](…)",
		"bool operator<(vector<int> const&, x)":       "bool operator<(…)",
		"stream& operator<<(stream&, long_name)":      "stream& operator<<(…)",
		"pair<a, b>::operator()(a, b, c, d) const":    "pair<a, b>::operator()(…) const",
		"box<x>::operator->(int, int, int) const":     "box<x>::operator->(…) const",
		"(anonymous namespace)::f(int, int, int)":     "(anonymous namespace)::f(…)",
		"<alloc::vec::Vec<T> as core::ops::Drop>::go": "<…>::go",
	} {
		got := ShortNames([]string{name}, 34)[name]
		if got != want {
			t.Errorf("short name of %s = %s, want %s", name, got, want)
		}
	}
	two := []string{"f(a_long_type, a_long_type)", "f(a_long_type, another_type)"}
	if short := ShortNames(two, 10); short[two[0]] == short[two[1]] {
		t.Error("ShortNames returned the same text for two names")
	}
}

// Short names differ if the full names differ. A short name exceeds the limit only if, within the
// limit, it would equal another short name.
func TestShortNamesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[ab<>(), …:-]{0,24}`), func(s string) string { return s }).Draw(t, "names")
		most := rapid.IntRange(1, 16).Draw(t, "most")
		short, seen := ShortNames(names, most), map[string]bool{}
		for _, name := range names {
			if seen[short[name]] {
				t.Fatalf("the short name of %q is %q, which is also the short name of another name", name, short[name])
			}
			seen[short[name]] = true
			if len(names) == 1 && utf8.RuneCountInString(short[name]) > most {
				t.Fatalf("%q: %q is longer than %d characters", name, short[name], most)
			}
			if utf8.RuneCountInString(name) <= most && len(names) == 1 && short[name] != name {
				t.Fatalf("%q became %q", name, short[name])
			}
		}
	})
}

func TestShortPath(t *testing.T) {
	deep := "main" + strings.Repeat(";expr;term;factor", 100) + ";skip"
	for path, want := range map[string]string{
		"main": "main", "main;a;b": "main;a;b", deep: "main;… 291 more …;expr;term;factor;expr;term;factor;expr;term;factor;skip"} {
		if got := shortPath(path); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
