package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// dineroRun is a run of the simulator DineroIV. Its methods do nothing if DineroIV is not
// installed.
type dineroRun struct {
	cmd   *exec.Cmd
	to    *bufio.Writer
	pipe  io.Closer
	said  bytes.Buffer
	line  uint64 // line size in bytes
	text  []byte
	ended bool // whether DineroIV has stopped reading
}

// newDinero starts DineroIV for one cache. If DineroIV cannot be started, the method "misses"
// returns no value.
func newDinero(ctx context.Context, c misses.Cache) *dineroRun {
	d := &dineroRun{line: c.LineBytes}
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	cmd := exec.CommandContext(ctx, "dineroIV", "-l1-usize", n(c.Lines()*c.LineBytes), "-l1-ubsize", n(c.LineBytes), "-l1-uassoc", n(c.Ways), "-informat", "d")
	in, err := cmd.StdinPipe()
	if err != nil {
		return d
	}
	cmd.Stdout = &d.said
	if cmd.Start() == nil {
		d.cmd, d.pipe, d.to = cmd, in, bufio.NewWriterSize(in, 1<<16)
	}
	return d
}

// writeBatch sends the references of a batch to DineroIV, with one access for each line that they
// touch.
func (d *dineroRun) writeBatch(b *trace.Batch) {
	if d.cmd == nil || d.ended {
		return
	}
	d.text = d.text[:0]
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		label := byte('0')
		switch kind {
		case trace.Store, trace.Modify, trace.RangeWrite:
			label = '1'
		case trace.Fetch:
			label = '2'
		}
		last := (b.Addr[i] + uint64(max(b.Bytes[i], 1)) - 1) / d.line
		for at := b.Addr[i] / d.line; at <= last; at++ {
			d.text = strconv.AppendUint(append(d.text, label, ' '), at*d.line, 16)
			d.text = append(d.text, '\n')
		}
		if len(d.text) > 1<<16 {
			d.flush()
		}
	}
	d.flush()
}

// flush sends the buffered text to DineroIV and clears the buffer.
func (d *dineroRun) flush() {
	if _, err := d.to.Write(d.text); err != nil {
		d.ended = true
	}
	d.text = d.text[:0]
}

func (d *dineroRun) kill() {
	if d.cmd != nil {
		d.pipe.Close()
		d.cmd.Process.Kill()
		d.cmd.Wait()
	}
}

// errDinero is the error for unexpected output of DineroIV.
var errDinero = errors.New("dineroIV is installed, but its output contains no line \"Demand Misses\"; to validate without dineroIV, remove it from PATH")

// misses waits until DineroIV ends and returns its number of misses. The value is None if DineroIV
// is not installed.
func (d *dineroRun) misses() (report.Value, error) {
	if d.cmd == nil {
		return report.None(), nil
	}
	if err := errors.Join(d.to.Flush(), d.pipe.Close(), d.cmd.Wait()); err != nil {
		return report.None(), errors.Join(errDinero, err)
	}
	for line := range strings.Lines(d.said.String()) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Demand Misses")
		if words := strings.Fields(rest); ok && len(words) > 0 {
			if n, err := strconv.ParseUint(words[0], 10, 64); err == nil {
				return report.Count(n), nil
			}
		}
	}
	return report.None(), errDinero
}
