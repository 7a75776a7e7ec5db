package ui

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// part is a part of a run that is analysed like a whole run. The zero part is the whole run.
type part struct {
	of    string // key of the analysis of the whole run; "": this is the whole run
	name  string // name of the analysis of the whole run
	total uint64 // number of references in the whole run; 0: unknown
	state.Range
}

// partMark precedes the range in the key of a part's analysis.
const partMark = "-part-"

// key returns the key of the part's analysis.
func (p part) key() string {
	return p.of + partMark + strconv.FormatUint(p.From, 10) + "-" + strconv.FormatUint(p.To, 10)
}

// title returns the name of the part's analysis.
func (p part) title() string { return state.PartName(p.Range, p.total, p.name) }

// partOfKey returns the part to which the key of an analysis belongs, or the zero part. The fields
// name and total are not set.
func partOfKey(key string) (p part) {
	at := strings.LastIndex(key, partMark)
	if at < 0 {
		return part{}
	}
	ends := strings.Split(key[at+len(partMark):], "-")
	if len(ends) < 2 {
		return part{}
	}
	if p.Range = state.ParseRange(ends[0] + ".." + ends[1]); p.Range == (state.Range{}) {
		return part{}
	}
	p.of = key[:at]
	return p
}

// partOf returns the part to which the key of an analysis belongs, with its name, or the zero part.
// The caller holds the lock.
func (a *App) partOf(key string) part {
	p := partOfKey(key)
	if i := slices.IndexFunc(a.kept, func(e profile.Entry) bool { return e.Key == p.of }); i >= 0 {
		p.name, p.total = a.kept[i].Name, a.kept[i].References
	} else if d := a.demoOfKey(p.of); d != nil {
		p.name, p.total = d.Title, d.References
	}
	return p
}

// chosenPart returns the chosen range as a part of the whole run. If the result in view is itself a
// part, its first reference is added to the range.
func (a *App) chosenPart() part {
	r := a.result
	p := part{of: r.Key, name: r.Name, total: r.Profile.Totals.AllReferences()}
	if outer := partOfKey(r.Key); outer.of != "" {
		p = a.partOf(r.Key)
	}
	v, first := a.inRange(), r.Profile.Input.Skip
	p.Range = state.Range{From: first + v.Range.From, To: first + v.Range.To}
	return p
}

// OffersPart reports whether the page offers to analyse only the chosen range, because the open
// view cannot be limited to the range, at least not completely.
func (a *App) OffersPart() bool {
	return a.ranged() && a.inRange().Part != nil && !a.Screen.Tab.RangedCompletely()
}

// PartLabel is the label of the button that analyses only the chosen range.
func (a *App) PartLabel() string {
	return "analyse only " + state.PartName(a.chosenPart().Range, 0, "")
}

// AnalysePart analyses only the chosen range, or opens the stored analysis of this range. If the
// trace was not opened since the page was loaded, AnalysePart asks for it.
func (a *App) AnalysePart() {
	if !a.OffersPart() {
		return
	}
	p := a.chosenPart()
	for _, e := range a.kept {
		if s := a.Screen.Anew(p.key()); e.Key == s.Open && e.State == profile.EntryComplete {
			s.Tab = a.Screen.Tab
			go func() {
				a.Port.SetHash(s.Hash(), false)
				a.Navigate("#" + s.Hash())
			}()
			return
		}
	}
	item, known := a.items[a.result.Key]
	if item.part = p; known {
		a.repeat(item)
		return
	}
	a.wantedPart = p
	a.Note = "Choose " + p.name + " again, or drop it on the page. Only " + state.PartName(p.Range, 0, "") + " will be analysed."
	a.Port.Pick()
	a.touch()
}

// takePart selects the part of the item that the user chose before the page asked for its file. If
// the item is a different file, all of it is analysed.
func (a *App) takePart(item *Item) {
	a.update(func() {
		p := a.wantedPart
		if p.of == "" || item.Demo != "" {
			return
		}
		a.wantedPart = part{}
		spec, err := a.spec(*item, a.Port.Settings())
		if item.File.Name == p.name || err == nil && fileKey(item.File, spec) == p.of {
			item.part, item.again = p, true
		}
	})
}

// WholeRun returns the link from the analysis of a part to the analysis of the whole run, or "" if
// the result in view is no part, or if the analysis of the whole run is not stored.
func (a *App) WholeRun() string {
	p := partOfKey(a.Screen.Open)
	for _, e := range a.kept {
		if e.Key == p.of && e.State != profile.EntryInterrupted && !a.comparing() {
			s := a.Screen.Anew(p.of)
			s.Tab = a.Screen.Tab
			return "#" + s.Hash()
		}
	}
	return ""
}
