package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

// TestWhatIf asks the page about presets and other sizes, and the command the
// same.
func TestWhatIf(t *testing.T) {
	needStage(t)
	trace := realTrace(t)
	profile := truthOf(t, trace).Profile
	p := openPage(t)
	p.pick(trace)
	p.finished()
	p.waitFor("#level-1")
	for _, preset := range eval[[]string](p, `Array.from(document.querySelectorAll("#preset option"), (o) => o.value)`) {
		eval[any](p, `(() => {
			const preset = document.getElementById("preset");
			preset.value = `+quote(preset)+`;
			preset.dispatchEvent(new Event("change", { bubbles: true }));
		})()`)
		p.compare(preset, whatIf(t, profile, "--hierarchy", preset))
	}

	// Sizes of one's own are in the URL.
	hash := eval[string](p, `location.hash.replace(/&(preset|levels)=[^&]*/g, "")`)
	p.visit("/" + hash + "&levels=A.2048.0.64_B.1048576.0.64")
	p.reload()
	p.compare("two levels of one's own", whatIf(t, profile, "--cache", "A=2KiB,full", "--cache", "B=1MiB,full"))
}

// hierarchy is the command's answer to what-if.
type hierarchy struct {
	Levels []struct {
		Name                   string
		Accesses, Hits, Misses float64
	}
	Memory struct{ Accesses float64 }
}

func whatIf(t *testing.T, profile string, levels ...string) *hierarchy {
	t.Helper()
	answer := ask(t, append([]string{"what-if", profile, "--format", "json"}, levels...)...)
	var h hierarchy
	if err := json.Unmarshal(answer, &h); err != nil || len(h.Levels) == 0 {
		t.Fatalf("what-if: %v in %s", err, answer)
	}
	return &h
}

// compare waits until the page shows the numbers of a hierarchy.
func (p *tab) compare(name string, want *hierarchy) {
	p.t.Helper()
	shown := map[string]float64{"#memory .accesses": want.Memory.Accesses}
	for i, l := range want.Levels {
		level := fmt.Sprintf("#level-%d ", i+1)
		shown[level+".accesses"], shown[level+".hits"], shown[level+".misses"] = l.Accesses, l.Hits, l.Misses
	}
	for selector, number := range shown {
		p.wait(fmt.Sprintf("%s: %s is %.0f", name, selector, number),
			fmt.Sprintf(`Math.abs(Number(document.querySelector(%s)?.textContent.replace(/\D/g, "") || NaN) - %.0f) <= 0`, quote(selector), math.Round(number)))
	}
	if n := len(want.Levels); p.has(fmt.Sprintf("#level-%d", n+1)) {
		p.t.Errorf("%s: more than %d levels", name, n)
	}
}

// TestSettings analyses with other settings than the first ones.
func TestSettings(t *testing.T) {
	needStage(t)
	demo := demos(t)[2]
	path := t.TempDir()
	want := truthIn(t, ask(t, "analyze", "demo:"+demo.Name, "--lines", "32,128", "--kinds", "store,modify", "--format", "json", "-o", path+"/p.sgp"))
	p := openPage(t)
	p.click("#settings summary")
	p.wait("the settings are unfolded", `document.getElementById("settings").open`)
	for _, choice := range []string{`[name=line][value="32"]`, `[name=line][value="64"]`, `[name=line][value="128"]`, `[name=kinds][value="store,modify"]`} {
		p.click("#settings-form " + choice)
	}
	p.click("#demo-" + demo.Name)
	if got := p.finished(); got != want.Digest {
		t.Errorf("lines of 32 and 128 bytes, stores and modifies: digest %s, the command's is %s", got, want.Digest)
	}
	for _, line := range []string{"128", "32"} {
		eval[any](p, `(() => {
			const size = document.getElementById("line-size");
			size.value = `+quote(line)+`;
			size.dispatchEvent(new Event("change", { bubbles: true }));
		})()`)
		p.wait("lines of "+line+" bytes", `document.getElementById("fact-line").textContent.startsWith("`+line+`-byte")`)
	}
}
