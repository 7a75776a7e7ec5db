package ui

import (
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
	refs  state.Range
}

// partMark precedes the range in the key of a part's analysis.
const partMark = "-part-"

// key returns the key of the part's analysis without the hash of the settings; see [App.demoKey].
func (p part) key() string {
	return p.of + partMark + strconv.FormatUint(p.refs.From, 10) + "-" + strconv.FormatUint(p.refs.To, 10)
}

// title returns the name of the part's analysis.
func (p part) title() string { return state.PartName(p.refs, p.total, p.name) }

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
	if p.refs = state.ParseRange(ends[0] + ".." + ends[1]); p.refs == (state.Range{}) {
		return part{}
	}
	p.of = key[:at]
	return p
}

// partOf returns the part to which the key of an analysis belongs, with its name, or the zero part.
// The caller holds the lock.
func (a *App) partOf(key string) part {
	p := partOfKey(key)
	if e := a.keptEntry(p.of); e.Key != "" {
		p.name, p.total = e.Name, e.References
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
	p.refs = state.Range{From: first + v.Range.From, To: first + v.Range.To}
	return p
}

// OffersPart reports whether the page offers to analyse only the chosen range, because the open
// view cannot be limited to the range, at least not completely.
func (a *App) OffersPart() bool {
	return a.ranged() && a.inRange().Part != nil && !a.Screen.Tab.RangedCompletely()
}

// PartLabel is the label of the button that analyses only the chosen range.
func (a *App) PartLabel() string {
	return "analyse only " + state.PartName(a.chosenPart().refs, 0, "")
}

// AnalysePart analyses only the chosen range, or opens the stored analysis of this range. If the
// trace was not opened since the page was loaded, AnalysePart asks for it.
func (a *App) AnalysePart() {
	if !a.OffersPart() {
		return
	}
	p := a.chosenPart()
	item, known := a.items[a.result.Key]
	if item.part, item.again = p, true; known {
		item = a.withThreads(item)
	} else if d := a.demoOfKey(p.of); d != nil {
		item.Demo = d.Name
	}
	if spec, err := a.spec(item, a.Port.Settings()); err == nil {
		if e := a.keptEntry(a.demoKey(item, spec)); e.State == profile.EntryComplete {
			a.Follow(a.sameView(e.Key))
			return
		}
	}
	if known {
		go a.Offer(item)
		return
	}
	a.wantedPart = p
	a.Note = "Choose " + p.name + " again, or drop it on the page. Only " + state.PartName(p.refs, 0, "") + " will be analysed."
	a.Port.Pick()
	a.touch()
}

// takePart selects the part of the item that the user chose before the page asked for its file. If
// the item is a different file, all of it is analysed.
func (a *App) takePart(item *Item) {
	a.update(func() {
		p := a.wantedPart
		a.wantedPart = part{}
		switch {
		case p.of == "" || item.Demo != "":
		case namedAfter(p.name, item.File.Name):
			item.part, item.again = p, true
		default:
			a.Note = "All references of " + item.File.Name + " are analysed, because the file is not named " + p.name + "."
		}
	})
}

// namedAfter reports whether [App.freeName] may have made the name of an analysis from the name of a
// file.
func namedAfter(name, file string) bool {
	stem, endings := cutEndings(file)
	number, numbered := strings.CutPrefix(name, stem+" (")
	number, closed := strings.CutSuffix(number, ")"+endings)
	_, err := strconv.ParseUint(number, 10, 64)
	return name == file || numbered && closed && err == nil
}

// WholeRun returns the link from the analysis of a part to the analysis of the whole run, or "" if
// the result in view is no part, or if the analysis of the whole run is not stored.
func (a *App) WholeRun() string {
	if e := a.keptEntry(partOfKey(a.Screen.Open).of); e.Key != "" && e.State != profile.EntryInterrupted && !a.comparing() {
		return "#" + a.sameView(e.Key)
	}
	return ""
}

// sameView returns the hash of the screen that shows a stored analysis in the current view.
func (a *App) sameView(key string) string {
	s := a.Screen.Anew(key)
	s.Tab = a.Screen.Tab
	return s.Hash()
}

// keptEntry returns a stored analysis, or the zero Entry. The caller holds the lock.
func (a *App) keptEntry(key string) *profile.Entry {
	for i := range a.kept {
		if a.kept[i].Key == key {
			return &a.kept[i]
		}
	}
	return new(profile.Entry)
}
