package command

import (
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/byfl"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// loadByfl reads a result of Byfl as a profile that contains only counters.
func (a *app) loadByfl(r *reading, in *pass.Input) (*answerable, error) {
	if err := r.refuseForResult(in.Name, "a result of Byfl"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	tables, err := byfl.Read(in.Name, data)
	if err != nil {
		return nil, err
	}
	counters, skipped, err := byfl.Counters(tables)
	if err != nil {
		return nil, &byfl.FormatError{File: in.Name, Offset: len(data), What: err.Error()}
	}
	l := &answerable{name: in.Name, Result: &pass.Result{Profile: &profile.Profile{Counters: counters}}, warnings: byfl.Notes()}
	l.Profile.Input.Header.Format = ask.ByflFormat
	if len(skipped) > 0 {
		l.warnings = append(l.warnings, "tables without a place here are left out: "+strings.Join(skipped, ", "))
	}
	return l, nil
}
