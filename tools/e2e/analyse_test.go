package e2e

import (
	"testing"
)

func TestDropFile(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 20e6)
	want := truthOf(t, trace)
	p := openPage(t)
	p.dropFiles(trace)

	// The page shows the curve, which grows while the run continues.
	const points = `JSON.stringify(document.querySelector("#chart-curve")?.points ?? null)`
	p.waitTrue("a growing curve", `document.querySelector("[data-running] #run-references") && document.querySelector(".chip.growing") &&
		document.querySelector("#chart-curve canvas") && document.querySelector("#chart-curve").points`)
	references, curve := p.textOf("#run-references"), eval[string](p, points)
	p.waitTrue("the number of references to grow and the curve to change during the run", `document.querySelector(".chip.growing") &&
		document.querySelector("#run-references").textContent !== `+quoteText(references)+` && `+points+` !== `+quoteText(curve))

	if got := p.waitFinished(); got != want.Digest {
		t.Errorf("digest = %s, want the command's digest %s", got, want.Digest)
	}
	if !p.has(".chip.complete") {
		t.Errorf("the result of a complete run is not marked as complete\n%s", p.pageText())
	}
}

func TestPickFile(t *testing.T) {
	needStage(t)
	trace := realTrace(t)
	p := firstVisit(t)
	p.pickFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}
