package e2e

import (
	"testing"
)

func TestDrop(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 20e6)
	want := truthOf(t, trace)
	p := openPage(t)
	p.drop(trace)

	// The page shows the curve, which grows while the run continues.
	const points = `JSON.stringify(document.querySelector("#chart-curve")?.points ?? null)`
	p.wait("a growing curve", `document.querySelector("[data-running] #run-references") && document.querySelector(".chip.growing") &&
		document.querySelector("#chart-curve canvas") && document.querySelector("#chart-curve").points`)
	references, curve := p.text("#run-references"), eval[string](p, points)
	p.wait("more references and a changed curve during the run", `document.querySelector(".chip.growing") &&
		document.querySelector("#run-references").textContent !== `+quote(references)+` && `+points+` !== `+quote(curve))

	if got := p.finished(); got != want.Digest {
		t.Errorf("digest = %s, want the command's digest %s", got, want.Digest)
	}
	if !p.has(".chip.complete") {
		t.Errorf("the result of a complete run is not marked as complete\n%s", p.screen())
	}
}

func TestPickFile(t *testing.T) {
	needStage(t)
	trace := realTrace(t)
	p := firstVisit(t)
	p.pick(trace)
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}
