package scaling

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// recorder records the references of a program, and compresses them into loops.
type recorder struct {
	folder *loops.Folder
	batch  *trace.Batch
	bases  []int64 // the addresses of the heap blocks, in the order of their allocation
}

func newRecorder() *recorder {
	r := &recorder{folder: loops.NewFolder(0), batch: trace.NewBatch(1)}
	r.batch.NeedSite()
	r.batch.NeedArg()
	return r
}

func (r *recorder) record(kind trace.Kind, site uint32, addr, arg int64, bytes uint32) {
	r.batch.Reset()
	r.batch.NeedSite()
	r.batch.NeedArg()
	r.batch.Append(kind, trace.Addr(addr), bytes, 1, 0)
	r.batch.Site[0], r.batch.Arg[0] = site, uint64(arg)
	if err := r.folder.Consume(r.batch); err != nil {
		panic(err) // a folder without an output function returns no error
	}
}

func (r *recorder) load(site uint32, addr int64) { r.record(trace.Load, site, addr, 0, 8) }

func (r *recorder) alloc(site uint32, base, size int64) int64 {
	r.record(trace.Alloc, site, base, size, 0)
	r.bases = append(r.bases, base)
	return base
}

// pages returns an arbitrary multiple of a page, which differs from run to run.
func pages(n, block int64) int64 { return (1+block)<<36 + (n*7919+block*104729)%5000*pageBytes }

// affineKernels lists programs whose loops can be extrapolated.
var affineKernels = []struct {
	name string
	run  func(r *recorder, n int64)
}{
	{"product", func(r *recorder, n int64) {
		a, b, c := r.alloc(100, pages(n, 0), 8*n*n), r.alloc(101, pages(n, 1), 8*n*n), r.alloc(102, pages(n, 2), 8*n*n)
		for i := range n {
			for j := range n {
				for k := range n {
					r.load(1, a+8*(i*n+k))
					r.load(2, b+8*(k*n+j))
				}
				r.load(3, c+8*(i*n+j))
			}
		}
	}},
	{"exchanged arrays", func(r *recorder, n int64) {
		from, to := r.alloc(100, pages(n, 0)+16, 8*n*n), r.alloc(101, pages(n, 1)+16, 8*n*n)
		for range 6 {
			for i := int64(1); i < n-1; i++ {
				for j := int64(1); j < n-1; j++ {
					r.load(1, from+8*(i*n+j-n))
					r.load(2, from+8*(i*n+j+n))
					r.load(3, to+8*(i*n+j))
				}
			}
			from, to = to, from
		}
	}},
	{"triangle", func(r *recorder, n int64) {
		a := r.alloc(100, pages(n, 0), 8*n*n)
		for i := range n {
			for j := range i + 1 {
				r.load(1, a+8*(i*n+j))
				r.load(2, a+8*(j*n+i))
			}
		}
	}},
	{"rows", func(r *recorder, n int64) {
		row := pages(n, 0)
		for i := range n {
			r.record(trace.Alloc, 100, row+i*(8*n+16), 8*n, 0)
		}
		r.bases = append(r.bases, row)
		for j := range n {
			for i := range n {
				r.load(1, row+i*(8*n+16)+8*j)
			}
		}
	}},
	{"backwards, with a copy and a static array", func(r *recorder, n int64) {
		a, table, argument := r.alloc(100, pages(n, 0), 16*n), pages(n, 5), pages(n, 6)+8*(n%13)
		r.load(4, argument)
		for range n {
			for i := n - 1; i >= 0; i-- {
				r.load(1, a+16*i)
				r.load(2, table+16*i)
			}
			r.record(trace.RangeWrite, 3, a, 0, uint32(16*n))
		}
	}},
}

// loopInput returns a run of a program that consists of one block.
func loopInput(n int64, run func(r *recorder, n int64)) (Input, *recorder) {
	in, r := irregular("loops", n, uint64(n), 0), newRecorder()
	run(r, n)
	in.Profile.Loops = r.folder.Finish().Append(nil)
	in.Profile.Input.Kinds = trace.DataKinds
	return in, r
}

// basesOf returns the real bases of the regions in a run.
func basesOf(t rapidOrTest, x *nests, in Input, r *recorder) []int64 {
	tree, err := loops.Decode(in.Profile.Loops)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := flatten(tree.Only(trace.DataKinds | 1<<trace.Alloc).Nest().Items)
	bases := slices.Clone(r.bases)
	for len(bases) < len(x.regions) {
		bases = append(bases, f.leaves[slices.Index(x.of, len(bases))].addr)
	}
	return bases
}

type rapidOrTest interface{ Fatal(...any) }

// records returns the references of a tree.
func records(t rapidOrTest, tree *loops.Tree) (list []loops.Reference, addrs []trace.Addr) {
	e, b := tree.Expand(), trace.NewBatch(1<<12)
	for {
		err := e.Next(b)
		if errors.Is(err, io.EOF) || err == nil && b.Len() == 0 {
			return list, addrs
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			list = append(list, loops.Reference{Site: b.Site[i], Bytes: b.Bytes[i], Kind: b.Kind[i]})
			addrs = append(addrs, b.Addr[i])
		}
	}
}

// checkNests extrapolates the loops of a program, and compares all references with those of a real
// run whose data has the same addresses.
func checkNests(t rapidOrTest, inputs []Input, real Input, r *recorder) {
	p, err := FitProgram([]string{"n"}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if p.nests == nil {
		t.Fatal("the loops were not extrapolated: " + p.noNests)
	}
	items, err := p.nests.at(real.Parameters, p.Names)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := p.nests.place(items, basesOf(t, p.nests, real, r)).Build()
	if err != nil {
		t.Fatal(err)
	}
	want, err := loops.Decode(real.Profile.Loops)
	if err != nil {
		t.Fatal(err)
	}
	x, xs := records(t, tree.Only(trace.DataKinds))
	y, ys := records(t, want.Only(trace.DataKinds))
	if !slices.Equal(x, y) || !slices.Equal(xs, ys) {
		t.Fatal("the extrapolated loops make other references than the run")
	}
}

// TestExtrapolatedKernels compares the extrapolated references of typical programs with real runs.
func TestExtrapolatedKernels(t *testing.T) {
	for _, k := range affineKernels {
		t.Run(k.name, func(t *testing.T) {
			var inputs []Input
			for _, n := range []int64{12, 16, 20, 24, 28} {
				in, _ := loopInput(n, k.run)
				inputs = append(inputs, in)
			}
			for _, n := range []int64{29, 64} {
				real, r := loopInput(n, k.run)
				checkNests(t, inputs, real, r)
			}
		})
	}
}

// TestExtrapolatedNests compares the extrapolated references of random affine programs with real
// runs. The strides of each reference are drawn from 0, 1, n and n^2 elements, in both directions.
func TestExtrapolatedNests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nests []*nest
		for range rapid.IntRange(1, 3).Draw(t, "nests") {
			l := drawNest(t, 0)
			l.more += 4 // a loop that runs too few iterations is not compressed as a loop
			nests = append(nests, l)
		}
		p := newNested(nests)
		strides := make([][3]int, len(p.program.Blocks))
		for b := range strides {
			for d := range strides[b] {
				strides[b][d] = rapid.IntRange(-3, 3).Draw(t, "stride")
			}
		}
		run := func(r *recorder, n int64) {
			var bases []int64
			for b := range p.program.Blocks {
				bases = append(bases, r.alloc(1000+uint32(b), pages(n, int64(b)), 1<<34)+1<<33)
			}
			stride := [...]int64{-n * n, -n, -1, 0, 1, n, n * n}
			access := func(b uint32, iterations []int64) {
				addr := bases[b]
				for d, i := range iterations {
					addr += 8 * stride[strides[b][d]+3] * i
				}
				r.load(b, addr)
			}
			var walk func(l *nest, iterations []int64)
			walk = func(l *nest, iterations []int64) {
				trips := l.times*n + l.more
				if l.triangle {
					trips = iterations[len(iterations)-1] + l.more
				}
				for i := range trips {
					around := append(iterations[:len(iterations):len(iterations)], i)
					access(l.body, around)
					for _, in := range l.inside {
						walk(in, around)
					}
					access(l.head, around)
				}
			}
			for _, l := range nests {
				walk(l, nil)
			}
		}
		var inputs []Input
		for _, n := range []int64{6, 8, 10, 12, 14} {
			in, _ := loopInput(n, run)
			inputs = append(inputs, in)
		}
		real, r := loopInput(18, run)
		checkNests(t, inputs, real, r)
	})
}

// TestForecastOfConflicts checks that the misses of a matrix product are counted exactly for a
// power of two whose columns conflict in a cache, and that the interval contains only this number,
// because all blocks begin at page boundaries.
func TestForecastOfConflicts(t *testing.T) {
	run := affineKernels[0].run
	var inputs []Input
	references := map[int64]uint64{}
	for _, n := range []int64{12, 16, 20, 24, 64} {
		in, _ := loopInput(n, run)
		references[n] = uint64(2*n*n*n + n*n)
		if n < 64 {
			inputs = append(inputs, in)
		}
	}
	p, err := FitProgram([]string{"n"}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	x, why := p.extrapolate([]int64{64}, references[64])
	if x == nil {
		t.Fatal(why)
	}
	real, _ := loopInput(64, run)
	tree, err := loops.Decode(real.Profile.Loops)
	if err != nil {
		t.Fatal(err)
	}
	c := hierarchy.Cache{Name: "L1", SizeBytes: 4096, Ways: 2, LineBytes: 64}
	want, _, err := misses.Total(tree.Only(trace.DataKinds), misses.Cache{LineBytes: 64, Sets: 32, Ways: 2}, func(uint64, uint64) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	out := &Predicted{Loops: x, Profile: &profile.Profile{}}
	if got := out.Forecast(c); !got.Counted || got.Misses != float64(want) || got.Low != got.Misses || got.High != got.Misses {
		t.Errorf("forecast %+v, want exactly %d misses", got, want)
	}
	if _, why := p.extrapolate([]int64{64}, 7); !strings.Contains(why, "references") {
		t.Errorf("reason %q, want the reason that the numbers of references differ", why)
	}
}

// TestNestsThatCannotBeExtrapolated checks the reasons.
func TestNestsThatCannotBeExtrapolated(t *testing.T) {
	several := func(r *recorder, n int64) {
		for i := range n {
			r.load(1, pages(1, 0)+8*i)
		}
	}
	for _, k := range []struct {
		want string
		run  func(r *recorder, n int64)
	}{
		{"irregular addresses", func(r *recorder, n int64) {
			for i := range 200 * n {
				r.load(1, pages(1, 0)+i*i*i%8191*8)
			}
		}},
		{"another structure", func(r *recorder, n int64) {
			for i := range n {
				r.load(1+uint32(n), pages(1, 0)+8*i)
			}
		}},
		{"follows no polynomial", func(r *recorder, n int64) {
			for i := range n*n%31 + 10 {
				r.load(1, pages(1, 0)+8*i)
			}
		}},
	} {
		var inputs []Input
		for _, n := range []int64{12, 16, 20, 24} {
			in, _ := loopInput(n, k.run)
			inputs = append(inputs, in)
		}
		p, err := FitProgram([]string{"n"}, inputs)
		if err != nil {
			t.Fatal(err)
		}
		if p.nests != nil || !strings.Contains(p.noNests, k.want) {
			t.Errorf("reason %q, want %q", p.noNests, k.want)
		}
	}
	var inputs []Input
	for _, n := range []int64{12, 16, 20} {
		in, _ := loopInput(n, several)
		inputs = append(inputs, in)
	}
	inputs[1].Profile.Loops, inputs[0].Profile.Loops = nil, nil
	p, err := FitProgram([]string{"n"}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if p.nests != nil {
		t.Error("the loops of a single run were extrapolated")
	}
	inputs[2].Profile.Loops = []byte{1, 2, 3}
	if p, err = FitProgram([]string{"n"}, inputs); err != nil || !strings.Contains(p.noNests, "damaged") {
		t.Errorf("reason %q and error %v, want the reason that the loops are damaged", p.noNests, err)
	}
}

// TestArbitraryNests checks that no loops cause a panic, and that limits of misses are in order.
func TestArbitraryNests(t *testing.T) {
	numbers := rapid.OneOf(rapid.Int64Range(-9, 9), rapid.Int64Range(0, 1<<20), rapid.Int64())
	var item func(t *rapid.T, depth int) loops.Item
	item = func(t *rapid.T, depth int) loops.Item {
		var it loops.Item
		for range rapid.IntRange(0, depth).Draw(t, "steps") {
			it.Steps = append(it.Steps, numbers.Draw(t, "step"))
		}
		if depth < 5 && rapid.IntRange(0, 2).Draw(t, "loop") > 0 {
			it.Trips = uint64(rapid.OneOf(rapid.Int64Range(0, 9), numbers).Draw(t, "trips"))
			for range rapid.IntRange(1, 2).Draw(t, "body") {
				it.Body = append(it.Body, item(t, depth+1))
			}
			return it
		}
		it.Addr = trace.Addr(numbers.Draw(t, "address"))
		it.Ref = loops.Reference{Kind: rapid.SampledFrom([]trace.Kind{trace.Load, trace.RangeWrite, trace.Alloc}).Draw(t, "kind"), Bytes: rapid.Uint32Range(0, 4096).Draw(t, "bytes"), Arg: uint64(numbers.Draw(t, "size"))}
		return it
	}
	rapid.Check(t, func(t *rapid.T) {
		nest := loops.Nest{}
		for range rapid.IntRange(1, 3).Draw(t, "items") {
			nest.Items = append(nest.Items, item(t, 0))
		}
		tree, err := nest.Build()
		if err != nil {
			return
		}
		var inputs []Input
		for _, n := range []int64{12, 16, 20} {
			in := irregular("loops", n, uint64(n), 0)
			in.Profile.Loops, in.Profile.Input.Kinds = tree.Append(nil), trace.DataKinds
			inputs = append(inputs, in)
		}
		p, err := FitProgram([]string{"n"}, inputs)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := p.extrapolate([]int64{40}, tree.Only(trace.DataKinds).Rows())
		if x == nil || tree.Rows() > 1<<9 {
			return
		}
		if n, low, high, placed := x.count(misses.Cache{LineBytes: 64, Sets: 4, Ways: 2}); placed > 0 && (n < low || n > high) {
			t.Fatalf("%d misses, from %d to %d", n, low, high)
		}
	})
}
