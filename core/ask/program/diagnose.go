package program

import (
	"cmp"
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/diagnose"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Diagnose is the verb that finds out why a run is slow.
var Diagnose = ask.Add(&ask.Verb{
	Name:    "diagnose",
	Title:   "Find problems, their costs, and what to change",
	Machine: ask.UsualCaches,
	Places:  true, Measures: true,
	First: true,
	Args: []ask.Arg{
		{Name: "processor", Default: costmodel.DefaultProcessor, Help: "use this processor: a name, or a `FILE` with a description"},
		{Name: "top", Kind: ask.Number, Default: "5", Help: "print the first `N` findings (csv and json contain all)"},
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
	o := diagnose.Options{Machine: q.Caches(), Processor: processor, Readable: r.Readable, GoOn: r.GoOn}
	if r.Partial != nil {
		o.Progress = func(tried int, soFar func() *diagnose.Diagnosis) {
			r.Partial(func() *report.Document {
				found, progress := soFar(), report.Table{Key: "progress", Columns: report.Columns("tried=changes tried")}
				progress.Add(report.Count(uint64(tried)))
				return &report.Document{Warnings: found.Notes, Tables: append(found.Tables(), progress)}
			})
		}
	}
	found, err := diagnose.Run(r.Profile, o)
	if err != nil {
		return r.Cannot(err.Error())
	}
	if !r.Wanted() {
		return ask.ErrStopped
	}
	d.Input, d.Warnings, d.Main = append(r.Facts(0), assumedMachine(r, q, processor)...), found.Notes, "findings"
	d.Tables = found.Tables()
	d.Prose = found.Cards(int(min(q.Number("top"), math.MaxInt32)), r.SourceText())
	return nil
}

// assumedMachine returns facts about the machine that a diagnosis assumes: the caches and, if the
// trace contains code, the processor.
func assumedMachine(r *ask.Run, q ask.Question, processor *pipeline.Processor) []report.Fact {
	asked := q.Caches()
	h, _ := costmodel.CompleteLatencies(asked, processor)
	var levels []string
	for _, l := range h.Levels {
		levels = append(levels, l.String())
	}
	facts := []report.Fact{{Key: "caches", Label: "caches", Value: report.TextOf(strings.Join(append(levels, "memory="+h.Memory.String()), " "))}}
	// hierarchies in questions from the page have no name
	if name := cmp.Or(asked.Name, asked.PresetName()); name != "" {
		facts = append([]report.Fact{{Key: "hierarchy", Label: "hierarchy", Value: report.TextOf(name)}}, facts...)
	}
	if len(r.Profile.Blocks) > 0 {
		facts = append(facts, report.Fact{Key: "processor", Label: "processor", Value: report.TextOf(processor.Name)})
	}
	return facts
}
