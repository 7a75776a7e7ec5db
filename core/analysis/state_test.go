package analysis_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
)

func TestStateAfterErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{analysis.ErrStopped, "stopped by the user after 7 references"},
		{fmt.Errorf("x: %w", &analysis.MemoryError{LimitBytes: 1}), "memory limit"},
		{&trace.DamageError{File: "secret.lz4", Layer: "lz4", Cut: true}, "lz4 stream is truncated"},
		{&trace.SyntaxError{File: "secret.din", Line: 3, What: "label", Got: "7", Want: "0 to 4"}, `trace:3: label "7", want 0 to 4`},
		{&fs.PathError{Op: "read", Path: "/home/secret", Err: errors.New("input/output error")}, "input/output error"},
		{errors.New("the file changed"), "the file changed"},
	} {
		s := analysis.StateAfter(c.err, 7)
		if !s.Partial || !strings.Contains(s.Reason, c.want) || strings.Contains(s.Reason, "secret") || !strings.Contains(s.Reason, "after 7 references") {
			t.Errorf("StateAfter(%v) has partial = %v and the reason %q, want a partial state whose reason contains %q, but no file name", c.err, s.Partial, s.Reason, c.want)
		}
	}
	if s := analysis.StateAfter(nil, 7); s.Partial || s.Reason != "" {
		t.Errorf("StateAfter(nil) = %+v, want a complete state", s)
	}
}
