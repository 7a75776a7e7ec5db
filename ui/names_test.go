package ui

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// TestReadableNames checks that the page shows the demangled names of functions.
func TestReadableNames(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.act(func() {
		r := *d.app.result
		p, sites := *r.Profile, *r.Profile.Sites
		sites.Code = slices.Clone(sites.Code)
		for i := range sites.Code {
			sites.Code[i].Function = "_ZN3foo3barEi"
		}
		p.Sites, r.Profile = &sites, &p
		d.app.present(&r)
	})
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.await(func() bool {
		v := d.app.codeView()
		return v != nil && strings.HasSuffix(v.Place(0), "  foo::bar(int)")
	})
	if label := d.timeline.Bands[0].Label; label != "foo::bar(int)" {
		t.Errorf("the timeline calls the function %q", label)
	}
}
