package record

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/capture/arrange"
)

// underValgrind converts lackey's output while the program runs.
func underValgrind(p program, out *os.File, o Options) (Result, error) {
	text, printed, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer text.Close()
	const descriptor = 3 // the file descriptor of the first element of ExtraFiles
	options := []string{"--tool=lackey", "--trace-mem=yes", "--trace-sched=yes", "--log-fd=" + strconv.Itoa(descriptor), "--", p.path}
	cmd := exec.Command("valgrind", append(options, p.args...)...)
	cmd.ExtraFiles = []*os.File{printed}
	c := conversion{extent: o.Extent, text: text, out: bufio.NewWriterSize(out, 1<<20), facts: append(p.captureFacts(),
		trace.Fact{Name: "tool", Value: "valgrind --tool=lackey"},
		trace.Fact{Name: "included", Value: "the program's own code and all libraries, starting with the loader"},
		trace.Fact{Name: "left out", Value: "references by the kernel and by child processes; names of the accessed data"})}
	c.facts = append(c.facts, o.Facts()...)
	status, how, err := runCommand(cmd, o, func() error {
		printed.Close() // only Valgrind keeps the pipe open, so the text ends when Valgrind ends
		return c.read()
	})
	err = errors.Join(err, c.close(how, status))
	return Result{Summary: c.summary, Status: status}, err
}

// conversion converts lackey's output to a container.
type conversion struct {
	text    io.Reader
	out     *bufio.Writer
	facts   []trace.Fact
	to      *sgt.Importer
	summary arrange.Summary
	threads map[uint32]bool
	extent  trace.Extent
	before  map[uint32]uint64 // number of references of each thread so far
}

func (c *conversion) read() error {
	c.to, c.threads, c.before = sgt.NewImporter(c.out, c.facts), map[uint32]bool{}, map[uint32]uint64{}
	r, b := lackey.NewReader("valgrind", c.text), trace.NewBatch(0)
	for {
		err := r.Next(b)
		switch {
		case err == io.EOF:
			return nil
		case trace.IsSyntax(err):
			continue // skip lines that Valgrind itself prints
		case err != nil:
			return err
		}
		c.restrict(b)
		c.count(b)
		if err := c.to.Write(b, r.Header()); err != nil {
			// Drain the pipe, so that the program does not block.
			_, drained := io.Copy(io.Discard, c.text)
			return errors.Join(err, drained)
		}
	}
}

// restrict removes the rows outside of the extent.
func (c *conversion) restrict(b *trace.Batch) {
	if c.extent.After == 0 && c.extent.For == 0 {
		return
	}
	var kept []int32
	thread := uint32(0)
	for i, kind := range b.Kind {
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		at := c.before[thread]
		if kind != trace.Fetch {
			c.before[thread]++
		}
		if at >= c.extent.After && (c.extent.For == 0 || at-c.extent.After < c.extent.For) {
			kept = append(kept, int32(i))
		}
	}
	b.Select(kept)
}

func (c *conversion) count(b *trace.Batch) {
	c.summary.References += uint64(b.Len())
	last := ^uint32(0)
	for _, thread := range b.Thread {
		if thread != last {
			c.threads[thread], last = true, thread
		}
	}
}

func (c *conversion) close(how string, status int) error {
	if c.to == nil {
		return nil
	}
	c.summary.Threads = max(len(c.threads), 1)
	c.summary.End = sgt.End{How: how, Status: uint64(status)}
	return errors.Join(c.to.Close(c.summary.End), c.out.Flush())
}
