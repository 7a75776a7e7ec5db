package e2e

import (
	"bytes"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The function "waitSimulated" waits until the simulation of the chosen policies is complete.
func (p *tab) waitSimulated() {
	p.t.Helper()
	p.waitFor("#table-simulation tbody tr")
	p.waitGone("#simulation progress")
}

// policiesEverywhere shows replacement policies and prefetchers, with and without a simulation.
func (p *tab) policiesEverywhere(look func(state string)) {
	p.t.Helper()
	p.openPath("/#demo=matmul-naive&view=caches&simulate=1&levels=L1.2048.4.64_L2.16384.8.64")
	p.waitFinished()
	p.openView("caches", "#policy-4")
	look("replacement policies, all LRU")
	p.setValue("policy-1", "drrip")
	p.setValue("policy-4", "stream")
	p.waitTrue("the prefetches", `document.querySelector("#table-prefetch")`)
	p.waitSimulated()
	look("replacement policies, simulated")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// TestSimulatedPolicies chooses a replacement policy and a prefetcher with the keyboard, and checks
// that the downloaded document equals the document of the command, also after a reload.
func TestSimulatedPolicies(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openPath("/#demo=matmul-naive&view=caches&levels=L1.2048.4.64_L2.16384.8.64")
	p.waitFinished()
	p.openView("caches", "#machine-policies")
	p.clickElement("#machine-policies")
	p.waitFor("#policy-4")
	if p.has("#simulation progress") || p.has("#table-simulation") {
		t.Error("the page simulates LRU replacement, for which the profile is exact")
	}
	choose := func(id, key string, presses int, want string) {
		t.Helper()
		eval[any](p, `document.getElementById(`+quoteText(id)+`).focus()`)
		for range presses {
			p.pressKeys(key)
		}
		p.waitTrue(want, `document.querySelector("#`+id+` option:checked").value === `+quoteText(want)+` && document.activeElement.id === `+quoteText(id))
	}
	choose("policy-1", kb.ArrowDown, 3, "fifo")
	choose("policy-2", kb.End, 1, "stream")
	check := func() {
		t.Helper()
		p.waitSimulated()
		_, path := p.awaitDownload(func() { p.clickElement("#simulation-json") })
		got := p.read(path)
		want := runCommand(t, "simulate", "demo:matmul-naive", "--bound", "--baseline", "--format", "json",
			"--cache", "L1=2KiB,4,fifo,prefetch=stream", "--cache", "L2=16KiB,8")
		name := eval[string](p, `document.getElementById("result-title").textContent`)
		if want = bytes.Replace(want, []byte(`"demo:matmul-naive"`), []byte(quoteText(name)), 1); !bytes.Equal(got, want) {
			t.Errorf("document = %s\nwant the document of the command: %s", got, want)
		}
	}
	check()
	for _, table := range []string{"simulation", "prefetch", "bound"} {
		if !p.has("#table-" + table + " tbody tr") {
			t.Errorf("the table %s is missing", table)
		}
	}
	p.waitAnnounced("instead of")
	p.takeScreenshots("caches-policies")
	p.reload()
	p.waitFor("#policy-4")
	check()
	choose("policy-1", kb.Home, 1, "lru")
	choose("policy-2", kb.Home, 1, "none")
	p.waitGone("#table-simulation")
	p.clickElement("#machine-policies")
	p.waitGone("#simulation")
}

// TestSimulateProfile checks that the page explains why a profile without its trace cannot be
// simulated.
func TestSimulateProfile(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.pickFiles(truthOf(t, shortTrace(t)).Profile)
	p.waitFor("#digest")
	p.openView("caches", "#machine-policies")
	p.clickElement("#machine-policies")
	p.waitTrue("the reason why nothing can be simulated", `document.querySelector("#simulation-note")?.textContent.includes("must be simulated from the trace")`)
	if p.has("#policy-1") {
		t.Error("the page offers policies, although the trace is not available")
	}
}
