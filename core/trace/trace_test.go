package trace_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func TestKinds(t *testing.T) {
	for list, want := range map[string]trace.Kinds{
		"load": 1, "store, modify": 6, "data": trace.DataKinds, "all": trace.AllKinds, "fetch,data": trace.AllKinds, "range-read": 16,
	} {
		got, err := trace.ParseKinds(list)
		if err != nil || got != want {
			t.Errorf("ParseKinds(%q) = %v, error %v, want %v", list, got, err, want)
		}
		if again, err := trace.ParseKinds(got.String()); err != nil || again != got {
			t.Errorf("ParseKinds(%q) = %v, error %v, want the original set", got, again, err)
		}
	}
	_, err := trace.ParseKinds("load,jump")
	if want := `kinds "jump", want load`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("ParseKinds: error %v, want an error that begins with %s", err, want)
	}
	if !trace.DataKinds.Has(trace.Modify) || trace.DataKinds.Has(trace.Fetch) {
		t.Error("DataKinds must contain Modify, but not Fetch")
	}
}

func TestErrorMessages(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&trace.SyntaxError{File: "app.din", Line: 1042, What: "label", Got: "7", Want: "0 to 4"}, `app.din:1042: label "7", want 0 to 4`},
		{&trace.SyntaxError{File: "a", Offset: 12, What: "type", Got: strings.Repeat("x", 50), Want: "load"}, `a at byte 12: type "` + strings.Repeat("x", 40) + `"…, want load`},
		{&trace.DamageError{File: "a", Layer: "lz4", Offset: 5, Cut: true}, `a: the lz4 stream is truncated after 5 decompressed bytes; copy the file again, or use the part before the cut`},
		{&trace.DamageError{File: "a", Layer: "sgt", Offset: 5, Cut: true, Err: trace.ErrCutShort}, `a is truncated after 5 bytes: the recorder was killed, or only a part of the file was copied; the references before this position can be read`},
		{&trace.DamageError{File: "a", Layer: "gzip", Err: errors.New("bad sum")}, `a: the gzip stream is damaged after 0 decompressed bytes (bad sum); copy the file again, or use the part before the damage`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestBatchColumns(t *testing.T) {
	b := trace.NewBatch(4)
	b.Append(trace.Load, 1, 8, 9, 9)
	b.NeedThread()
	b.Append(trace.Store, 2, 4, 7, 9)
	b.NeedPC()
	b.Append(trace.Fetch, 3, 2, 5, 6)
	if !slices.Equal(b.Thread, []uint32{0, 7, 5}) || !slices.Equal(b.PC, []trace.Addr{0, 0, 6}) {
		t.Errorf("threads %v, PCs %v, want 0 in the rows before the first value of a column", b.Thread, b.PC)
	}
	b.Select([]int32{0, 2})
	if b.Len() != 2 || b.Addr[1] != 3 || b.Thread[1] != 5 || b.PC[1] != 6 || b.Kind[1] != trace.Fetch || b.Bytes[1] != 2 {
		t.Errorf("the selected rows are %+v", b)
	}
	b.Slice(1, 2)
	if b.Len() != 1 || b.Addr[0] != 3 || b.Thread[0] != 5 || b.PC[0] != 6 {
		t.Errorf("the rows after Slice are %+v", b)
	}
	if b.Reset(); b.Len() != 0 || b.Cap() != 4 || b.Thread != nil || b.PC != nil {
		t.Errorf("after Reset, the batch is %+v", b)
	}
	// The memory of a removed column is reused, so it must be cleared.
	b.Resize(4)
	if b.NeedThread(); !slices.Equal(b.Thread, make([]uint32, 4)) {
		t.Errorf("threads %v, want all zeros", b.Thread)
	}
	if n := testing.AllocsPerRun(10, func() { b.Reset(); b.Resize(4); b.NeedThread(); b.NeedPC() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestReadAll(t *testing.T) {
	whole := tracetest.Lines(64, "1:a 2:b 1:c")
	got, err := trace.ReadAll(tracetest.NewReader(whole, 2))
	if err != nil || !slices.Equal(got.Addr, whole.Addr) || !slices.Equal(got.Thread, whole.Thread) || got.PC != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	gone := errors.New("gone")
	if got, err := trace.ReadAll(tracetest.Broken(whole, 2, gone)); err != gone || got.Len() != 2 {
		t.Errorf("ReadAll: %d rows, error %v, want 2 rows and the error of the reader", got.Len(), err)
	}
	// a column that first appears in a later batch is 0 in all earlier rows
	late := &parts{tracetest.Lines(64, "a"), tracetest.Of(tracetest.Ref{Addr: 1, PC: 5, Thread: 3})}
	got, err = trace.ReadAll(late)
	if err != nil || !slices.Equal(got.PC, []trace.Addr{0, 5}) || !slices.Equal(got.Thread, []uint32{0, 3}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The reader "parts" returns one batch after another.
type parts []*trace.Batch

func (p *parts) Next(b *trace.Batch) error {
	if len(*p) == 0 {
		b.Reset()
		return io.EOF
	}
	r := tracetest.NewReader((*p)[0], 0)
	*p = (*p)[1:]
	return r.Next(b)
}

func TestEvents(t *testing.T) {
	if trace.BlockEntry.IsReference() || !trace.RangeWrite.IsReference() || trace.Kind(6).Valid() || !trace.TaskWait.Valid() {
		t.Error("the kinds of references must come before the kinds of events, with a gap between them")
	}
	if trace.EventKinds&trace.AllKinds != 0 || !trace.EventKinds.Has(trace.TaskWait) || !trace.EventKinds.Has(trace.BlockEntry) {
		t.Errorf("EventKinds = %v, want all events and no references", trace.EventKinds)
	}
}

func TestSiteValues(t *testing.T) {
	for _, c := range []struct {
		site trace.Site
		want int
	}{
		{trace.Site{Kind: trace.Load, Bytes: 8}, 1},
		{trace.Site{Kind: trace.Load}, 2},
		{trace.Site{Kind: trace.Load, Flags: trace.NoSize}, 1},
		{trace.Site{Kind: trace.RangeWrite}, 2},
		{trace.Site{Kind: trace.Free}, 1},
		{trace.Site{Kind: trace.LoopBegin}, 2},
		{trace.Site{Kind: trace.Barrier}, 0},
	} {
		if got := c.site.Values(); got != c.want {
			t.Errorf("%+v has %d values, want %d", c.site, got, c.want)
		}
	}
}
