package program

import (
	"math"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/diagnose"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Diagnose is the verb that finds out why a run is slow.
var Diagnose = ask.Add(&ask.Verb{
	Name:    "diagnose",
	Title:   "Find problems, what they cost, and what to change",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=48KiB,12,latency=4", "L2=1MiB,16,latency=14", "L3=32MiB,16,latency=47,shared=all", "memory=latency=300"},
	Places:  true, Measures: true,
	First: true,
	Args: []ask.Arg{
		{Name: "processor", Default: costmodel.DefaultProcessor, Help: "the processor: a name, or a `FILE` that describes one"},
		{Name: "top", Kind: ask.Number, Default: "5", Help: "print the first `N` findings (csv and json have all)"},
	},
	Needs: func(ask.Question) analysis.Analyses {
		return analysis.Sites | analysis.Sets | analysis.Blocks | analysis.Loops | analysis.Sharing | analysis.Communication
	},
	Lines: ask.LevelLines,
	Missing: func(p *profile.Profile) string {
		switch {
		case p.Totals.AllReferences() == 0:
			return ask.NoReference
		case len(p.Locality) == 0:
			return "the profile has no stack distances"
		}
		return ""
	},
	Answer: findings,
})

func findings(r *ask.Run, q ask.Question, d *report.Document) error {
	processor, err := Processor(r, q)
	if err != nil {
		return err
	}
	found, err := diagnose.Run(r.Profile, diagnose.Options{Machine: q.Caches(), Processor: processor, Readable: r.Readable, GoOn: r.GoOn})
	if err != nil {
		return r.Cannot(err.Error())
	}
	if !r.Wanted() {
		return ask.ErrStopped
	}
	d.Input, d.Warnings, d.Main = r.Facts(0), found.Notes, "findings"
	d.Tables = found.Tables()
	d.Prose = append([]report.Table{{Key: "verdict", Title: found.Verdict()}}, found.Cards(int(min(q.Number("top"), math.MaxInt32)), r.SourceText())...)
	return nil
}
