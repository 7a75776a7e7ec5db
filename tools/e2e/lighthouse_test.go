package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

const (
	lighthouse     = "lighthouse@12.8.2"
	lighthouseRuns = 5 // number of runs whose median is printed; Lighthouse recommends five runs
)

// TestLighthouse measures the page and two pages of the manual with Lighthouse, as on a desktop
// computer and on a phone. The scores for accessibility, best practices and search engines must be
// 100. The score for performance is only printed, because it depends on the speed of the machine.
//
// The test is part of make soak, not of make test, because it takes seven minutes, fetches 200 npm
// packages that nothing else needs, and yields useful scores only on an idle machine.
func TestLighthouse(t *testing.T) {
	if !isSoak {
		t.Skip("skipped: this test takes seven minutes and needs an idle machine; set STACKGLASS_SOAK=1 to run it")
	}
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("skipped: there is no npx (Debian: apt-get install npm), which fetches and runs Lighthouse")
	}
	browser, err := chromium.Find()
	if err != nil {
		t.Fatal(err)
	}
	s := serveCommand(t, ":0")
	measure := func(path string, more ...string) map[string]float64 {
		report := filepath.Join(t.TempDir(), "report.json")
		// Lighthouse must not send reports of errors.
		cmd := exec.Command(npx, append([]string{"--yes", lighthouse, s.origin + path, "--quiet", "--no-enable-error-reporting",
			"--output=json", "--output-path=" + report, "--only-categories=performance,accessibility,best-practices,seo",
			"--chrome-flags=--headless=new --no-sandbox --disable-gpu --disable-quic --disable-background-networking --disable-component-update --disable-sync"}, more...)...)
		cmd.Env = append(os.Environ(), "CHROME_PATH="+browser, "CI=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("lighthouse: %v\n%s", err, out)
		}
		content, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			Categories map[string]struct{ Score float64 }
			Audits     map[string]struct{ NumericValue float64 }
		}
		if err := json.Unmarshal(content, &result); err != nil {
			t.Fatal(err)
		}
		scores := map[string]float64{"blocking time in ms": result.Audits["total-blocking-time"].NumericValue}
		for name, c := range result.Categories {
			scores[name] = 100 * c.Score
		}
		return scores
	}
	for _, path := range []string{"/", "/docs/", "/docs/stack-distance.html"} {
		for device, flags := range map[string][]string{"desktop": {"--preset=desktop"}, "phone": nil} {
			t.Run(strings.Trim(path, "/")+" "+device, func(t *testing.T) {
				all := map[string][]float64{}
				for range lighthouseRuns {
					for name, score := range measure(path, flags...) {
						all[name] = append(all[name], score)
					}
				}
				for name, list := range all {
					slices.Sort(list)
					t.Logf("%s: median %.0f, from %.0f to %.0f", name, list[len(list)/2], list[0], list[len(list)-1])
				}
				for _, name := range []string{"accessibility", "best-practices", "seo"} {
					if list := all[name]; len(list) == 0 || list[0] < 100 {
						t.Errorf("scores for %s = %v, want 100", name, list)
					}
				}
			})
		}
	}
}
