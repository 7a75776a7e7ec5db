package hierarchy

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Translate predicts the misses of h's TLBs for data. Each thread has its own TLBs. A fully
// associative first TLB is predicted exactly, and other TLBs like caches (MODELS §2.2). The result
// has no levels if h has no TLBs for its page size. The error is a [*trace.OptionError].
func (a *Asker) Translate(h Hierarchy) (Prediction, error) {
	page := h.PageSize()
	t := h.Translation()
	if len(t.Levels) == 0 {
		return Prediction{References: a.p.Totals.AllReferences()}, nil
	}
	found := a.p.PagesAt(page)
	bad := &trace.OptionError{Option: "pages", Got: FormatSize(page)}
	switch {
	case len(a.p.Pages) == 0 && len(a.p.Totals.Threads) > profile.MaxThreads:
		bad.Want = "a run of at most 64 threads"
		return Prediction{}, bad
	case len(a.p.Pages) == 0:
		bad.Want = "a profile that contains stack distances of pages; analyse the whole trace again, without a sample"
		return Prediction{}, bad
	case found == nil:
		bad.Want = "a page size of the profile: 4KiB, 2MiB or 1GiB"
		return Prediction{}, bad
	}
	for _, c := range t.Levels {
		if c.Lines() < profile.LeastEntries && c.Lines() < found.Cold {
			bad.Got, bad.Want = c.tlbText(), "a TLB of at least 8 entries, because profiles do not distinguish shorter stack distances of pages"
			return Prediction{}, bad
		}
	}
	p := &profile.Profile{Locality: []profile.Locality{found.Locality()}, Totals: a.p.Totals}
	t.Instructions, t.Threads = nil, OnOneCore
	asker := NewAsker(p)
	asker.pages = true
	out, _, err := asker.Predict(t, nil)
	return out.Prediction, err
}

// TranslationDoubts returns the caveats of a prediction of h's TLBs.
func (h Hierarchy) TranslationDoubts() (warnings []Warning) {
	for _, c := range h.Translation().Levels {
		if text := policyCaveat(c, false); text != "" {
			warnings = append(warnings, Warning(c.Name+text))
		}
		if c.SharedBy > 1 {
			warnings = append(warnings, Warning(c.Name+": cores share this TLB, but the prediction gives each thread a TLB of its own"))
		}
	}
	return warnings
}
