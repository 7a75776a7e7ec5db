package champsim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

// instr has the same layout as ChampSim's type input_instr.
type instr struct {
	IP              uint64
	IsBranch, Taken uint8
	Written         [2]uint8
	Read            [4]uint8
	Destinations    [2]uint64
	Sources         [4]uint64
}

func encode(all ...instr) string {
	var text bytes.Buffer
	for _, i := range all {
		if err := binary.Write(&text, binary.LittleEndian, i); err != nil {
			panic(err)
		}
	}
	return text.String()
}

// The function "naive" is a simple reference implementation that decodes each record with
// encoding/binary.
func naive(text string) (all []outcome) {
	r := strings.NewReader(text)
	for at := int64(0); ; at += 64 {
		var i instr
		if binary.Read(r, binary.LittleEndian, &i) != nil {
			return all
		}
		if i.IsBranch > 1 || i.Taken > i.IsBranch {
			all = append(all, outcome{ErrorByte: at + 1})
			continue
		}
		row := func(kind trace.Kind, addr trace.Addr) {
			all = append(all, outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, PC: i.IP}})
		}
		row(trace.Fetch, i.IP)
		for _, addr := range i.Sources {
			if addr != 0 {
				row(trace.Load, addr)
			}
		}
		for _, addr := range i.Destinations {
			if addr != 0 {
				row(trace.Store, addr)
			}
		}
	}
}

var small = []instr{
	{IP: 0x401000, Destinations: [2]uint64{0x7ffc00001000}},
	{IP: 0x401004, Sources: [4]uint64{0x7ffc00001000, 0x602000, 0, 0x602040}, Destinations: [2]uint64{0, 0x602000}},
	{IP: 0x401009, IsBranch: 1, Taken: 1},
	{IP: 0x401000},
}

func TestRecords(t *testing.T) {
	row := func(kind trace.Kind, addr, pc trace.Addr) outcome {
		return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, PC: pc}}
	}
	tracetest.CheckText(t, encode(small...), reader, []outcome{
		row(trace.Fetch, 0x401000, 0x401000), row(trace.Store, 0x7ffc00001000, 0x401000),
		row(trace.Fetch, 0x401004, 0x401004), row(trace.Load, 0x7ffc00001000, 0x401004), row(trace.Load, 0x602000, 0x401004),
		row(trace.Load, 0x602040, 0x401004), row(trace.Store, 0x602000, 0x401004),
		row(trace.Fetch, 0x401009, 0x401009), row(trace.Fetch, 0x401000, 0x401000),
	})
}

func TestEqualsReference(t *testing.T) {
	addr := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Max(1<<47-1), rapid.Uint64())
	flag := rapid.SampledFrom([]uint8{0, 0, 0, 1, 1, 2, 255})
	rapid.Check(t, func(t *rapid.T) {
		var all []instr
		for range rapid.IntRange(0, 9).Draw(t, "records") {
			i := instr{IP: addr.Draw(t, "ip"), IsBranch: flag.Draw(t, "branch"), Taken: flag.Draw(t, "taken")}
			for s := range i.Sources {
				i.Sources[s] = addr.Draw(t, "source")
			}
			for d := range i.Destinations {
				i.Destinations[d] = addr.Draw(t, "destination")
			}
			all = append(all, i)
		}
		text := encode(all...)
		tracetest.CheckText(t, text, reader, naive(text))
	})
}

func TestErrors(t *testing.T) {
	wrong := small[1]
	wrong.Taken = 1
	r := NewReader("a.champsim", strings.NewReader(encode(small[0], wrong)+"cut"))
	b, err := trace.ReadAll(r)
	if want := `a.champsim at byte 64: branch_taken "1", want 0 for an instruction that is not a branch`; b.Len() != 2 || err == nil || err.Error() != want {
		t.Errorf("Next: %d rows, error %v, want 2 rows and the error %s", b.Len(), err, want)
	}
	var damage *trace.DamageError
	if err := r.Next(b); !errors.As(err, &damage) || !damage.Cut || damage.Offset != 128 {
		t.Errorf("error %v, want a DamageError that reports truncation after 128 bytes", err)
	}
}

func TestRecognise(t *testing.T) {
	with := func(change func(*instr)) string {
		last := small[3]
		change(&last)
		return encode(append(append([]instr{}, small[:3]...), last)...)
	}
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		encode(small...):                                       "",
		encode(small...)[:200]:                                 "",
		"0 1000\n":                                             "shorter than one record, which has 64 bytes",
		strings.Repeat(" L 04001ab0,8\n", 99):                  "is_branch",
		with(func(i *instr) { i.IP = 0 }):                      "record 4: the instruction is at address 0",
		with(func(i *instr) { i.Taken = 1 }):                   "record 4: branch_taken 1",
		with(func(i *instr) { i.Sources[2] = 1 << 50 }):        "record 4: 0x4000000000000 is not an address",
		encode(small[2], small[3]):                             "no record of the file accesses memory",
		with(func(i *instr) { i.Sources[0] = ^uint64(0) - 7 }): "",
	})
}

func TestNoAllocations(t *testing.T) {
	tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader("t", tracetest.Endless([]byte(encode(small...)))))
}

func FuzzChampSim(f *testing.F) {
	f.Add([]byte(encode(small...)))
	f.Fuzz(func(t *testing.T, text []byte) {
		Recognise(text)
		whole := string(text[:len(text)/64*64])
		tracetest.CheckText(t, whole, reader, naive(whole))
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat([]byte(encode(small...)), 20000))
}
