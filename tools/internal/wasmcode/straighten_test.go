package wasmcode

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// jumpingProgram is a Go program with nested loops. The program jumps into and out of these loops,
// its goroutines wait inside the loops, and some of its calls panic.
const jumpingProgram = `package main

import (
	"fmt"
	"sort"
	"strings"
)

func collatz(n uint64) (steps int) {
	for n != 1 {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
		steps++
	}
	return steps
}

func mixed(limit int) (sum int) {
	i := 0
again:
	for ; i < limit; i++ {
		for j := 0; ; j++ {
			switch {
			case j == i:
				continue again
			case i*j%7 == 3:
				i += 2
				goto again
			case j > 20:
				break again
			}
			for k := range j {
				if k*k > sum%50 {
					break
				}
				sum += k
			}
			sum += j
		}
	}
	if sum%2 == 1 && i < 1000 {
		i += 3
		goto again
	}
	return sum
}

func failing(n int) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(n, " failed: ", p)
		}
	}()
	list := make([]int, 5)
	for i := range 10 {
		for list[i%n] < 3 {
			list[i%n]++
			if i*n == 18 {
				panic("no")
			}
		}
	}
	return fmt.Sprint(list)
}

func main() {
	for n := range uint64(30) {
		fmt.Print(collatz(n+1), " ")
	}
	fmt.Println(mixed(15), mixed(300))
	for n := range 8 {
		fmt.Println(failing(n))
	}
	in, out := make(chan int), make(chan string)
	for w := range 3 {
		go func() {
			for n := range in {
				for i := range n {
					if i%2 == w%2 {
						out <- strings.Repeat("x", i+1)
					} else {
						select {
						case out <- fmt.Sprint(i, collatz(uint64(i+1))):
						}
					}
				}
			}
			out <- ""
		}()
	}
	go func() {
		for n := range 20 {
			in <- n
		}
		close(in)
	}()
	var all []string
	for left := 3; left > 0; {
		if s := <-out; s == "" {
			left--
		} else {
			all = append(all, s)
		}
	}
	sort.Strings(all)
	fmt.Println(len(all), all)
}
`

// TestStraighten checks that a straightened program, and this program after it is shortened, print
// the same output as the original program.
func TestStraighten(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: Node is not installed; the tests of the page also run straightened programs")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := func(file []byte) string {
		path := filepath.Join(t.TempDir(), "main.wasm")
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(node, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js"), path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	file := compileProgram(t, jumpingProgram)
	straight, err := Straighten(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(straight) >= len(file) {
		t.Errorf("the straightened program has %d bytes, want fewer than the original %d", len(straight), len(file))
	}
	want := run(file)
	if !strings.Contains(want, "6 failed: no") {
		t.Fatalf("the original program printed %q, want the line “6 failed: no”", want)
	}
	if got := run(straight); got != want {
		t.Errorf("the straightened program printed\n%s\nwant\n%s", got, want)
	}
	short, err := Shorten(straight)
	if err != nil {
		t.Fatal(err)
	}
	if len(short) > len(straight)*24/25 {
		t.Errorf("the shortened program has %d bytes, want fewer than the %d bytes before", len(short), len(straight))
	}
	if got := run(short); got != want {
		t.Errorf("the shortened program printed\n%s\nwant\n%s", got, want)
	}
	if _, err := Fold(short); err != nil {
		t.Error(err)
	}
}

// TestStraightenUnknownCode checks that Straighten returns an error for code in an unknown form.
func TestStraightenUnknownCode(t *testing.T) {
	file := compileSmall(t)
	again, err := Straighten(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"nothing": nil, "the head": file[:HeadBytes], "a part": file[:len(file)/2], "straight code": again,
		"other numbers of variables": bytes.ReplaceAll(file, []byte{opSet, 0, opBranch}, []byte{opSet, 1, opBranch}),
	} {
		if _, err := Straighten(file); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCheckDetectsChanges checks that flow.checkEquivalence detects changed branch targets. A
// change is harmless if, for the number in variable 0, the branches to the old and to the new loop
// lead to the same block.
func TestCheckDetectsChanges(t *testing.T) {
	changed, missed := 0, 0
	fails := func(f *flow) (failed bool) {
		defer func() { failed = recover() != nil }()
		f.checkEquivalence()
		return false
	}
	r := &Reader{File: compileProgram(t, jumpingProgram), At: HeadBytes}
	for id := range r.Sections() {
		if id != CodeSection {
			continue
		}
		for number := range r.Unsigned() {
			length := r.Unsigned()
			f := parseFlow(r.File[r.At:r.At+length], firstFunction+number)
			r.At += length
			if f == nil || number%5 > 0 {
				continue
			}
			f.write()
			c := newFlowChecker(f)
			for at, is := range c.list {
				number := is.offset + 1
				if is.op != opBranch && is.op != opBranch2 || f.out[number] >= 0x7f || c.list[at-1].op == opSet {
					continue
				}
				changed++
				f.out[number]++
				if !fails(f) && c.behindEnds(c.branchTarget(at, is.number)) != c.behindEnds(c.branchTarget(at, is.number+1)) {
					missed++
				}
				f.out[number]--
			}
			f.checkEquivalence()
		}
	}
	if t.Logf("%d changes, of which %d were not detected", changed, missed); changed < 1000 || missed > 0 {
		t.Errorf("%d of %d changes were not detected", missed, changed)
	}
}

func (c *flowChecker) behindEnds(at int) int {
	for c.list[at].op == opEnd {
		at++
	}
	return at
}
