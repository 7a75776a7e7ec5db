package command

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
)

// TestAnalysesOfVerbs checks that each verb runs only the analyses that its answer needs, unless
// the user requests other analyses.
func TestAnalysesOfVerbs(t *testing.T) {
	inFolder(t, map[string]string{"one.din": "0 1000\n1 2000\n", "two.csv": "addr,rw,size,tid\n0x1000,w,8,0\n0x1000,r,8,1\n"})
	for line, want := range map[string]string{
		"analyze one.din": analysis.Usual.String(),
		"analyze one.din --analyses locality,counters":              "locality,counters",
		"analyze one.din --analyses sharing":                        "sharing",
		"histogram one.din":                                         "locality",
		"histogram two.csv":                                         "locality",
		"curve one.din":                                             "locality",
		"sets one.din":                                              "sets",
		"what-if one.din --cache L1=1KiB,full":                      "locality,operations",
		"what-if one.din --cache L1=1KiB,2":                         "locality,sets,sharing,operations",
		"what-if one.din --cache L1=1KiB,2,hashed":                  "locality,operations",
		"what-if one.din --cache L1=1536,8":                         "locality,operations", // a cache with three sets
		"what-if two.csv --cache L1=1KiB,full":                      "locality,sharing,operations",
		"what-if demo:matmul-naive --cache L1=1KiB,full":            "locality,operations", // a trace with one thread
		"what-if demo:false-sharing --cache L1=1KiB,full":           "locality,sharing,operations",
		"sites demo:matmul-naive":                                   "sites,sets,sharing",
		"sites demo:matmul-naive --cache L1=1KiB,full":              "sites",
		"threads two.csv":                                           "sharing",
		"communication two.csv":                                     "communication",
		"counters one.din":                                          "locality,counters",
		"blocks demo:matmul-naive":                                  "sites,blocks",
		"loops demo:matmul-naive":                                   "sites,loops",
		"compare one.din one.din --on curve":                        "locality",
		"compare one.din one.din --on what-if --cache L1=1KiB,full": "locality,operations",
		"compare one.din one.din --on sets":                         "sets",
		"compare one.din one.din":                                   "default",
		"export demo:matmul-naive --to folded":                      "sites,sets,sharing,blocks",
		"export demo:matmul-naive --to pprof --cache L1=32KiB,8":    "sites,sets,sharing,blocks",
		"export demo:matmul-naive --to json":                        analysis.Usual.String(), // all tables are exported, and the digest must be the same as with analyze
		"demo matmul-naive":                                         "locality",
	} {
		got := ""
		a := &app{stdin: strings.NewReader(""), stderr: io.Discard, unbuffered: io.Discard, analysing: func(s analysis.Spec) { got = s.Analyses.String() }}
		if code := a.run(context.Background(), words(line)); code != exitOK || got != want {
			t.Errorf("%s: exit code %d, analyses %s, want %s", line, code, got, want)
		}
	}
}
