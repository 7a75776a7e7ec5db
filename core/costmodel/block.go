package costmodel

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// mostScheduled is the maximum number of cycles in a displayed schedule.
const mostScheduled = 400

// blockTables returns the tables that show the time and the schedule of a block.
func (m *Models) blockTables(b int) []report.Table {
	bounds := report.Table{Key: "bounds", Title: "Cycles and bounds", Columns: report.Columns("name", "value")}
	schedule := report.Table{Key: "schedule", Title: "Schedule of one pass", Columns: report.Columns("cycle")}
	if b < 0 || len(m.program.Blocks[b].Instrs) == 0 {
		return []report.Table{bounds, schedule}
	}
	add := func(name string, value report.Value) { bounds.Add(report.TextOf(name), value) }
	instrs := m.program.Blocks[b].Instrs
	alone := m.processor.NewBody(instrs, m.schedulingOptions(uint32(b)))
	pass := alone.OnePass()
	add("cycles of one pass on an idle core", report.Decimal(pass.Cycles))
	if of := &m.runtime.Blocks[b]; of.Bottleneck != "" {
		s := &of.Steady
		if of.Loop > 0 {
			add("iterations of the loop", m.executionCount(int(of.Loop-1)))
			add("cycles per iteration", report.Decimal(s.Cycles))
			add("bound by results of the previous iteration", report.Decimal(s.Recurrence))
		} else {
			add("cycles per execution, if other blocks run before and after", report.Decimal(s.Cycles))
		}
		add(strings.TrimSpace("bound by ports "+m.processor.PortNames(s.Full)), report.Decimal(s.Ports))
		add("bound by dispatch, "+strconv.Itoa(m.processor.Dispatch)+" micro-ops per cycle", report.Decimal(s.Dispatch))
		if s.Misses > 0 {
			add("bound by misses that overlap in the window", report.Decimal(s.Misses))
		}
		if s.Transfers > 0 {
			add("bound by accesses to the first level, and by the lines that are fetched into the first level", report.Decimal(s.Transfers))
		}
		add("limited by", report.TextOf(string(of.Bottleneck)))
	}
	m.addSchedule(&schedule, alone, &pass, instrs)
	return []report.Table{bounds, schedule}
}

// addSchedule adds a row for each cycle in which a port is busy, and a column for each of these
// ports. If an operation occupies a port for several cycles, the cycles after the first contain a
// mark.
func (m *Models) addSchedule(t *report.Table, of *pipeline.Body, pass *pipeline.Schedule, instrs []trace.Instr) {
	cycles := pass.Table(len(m.processor.Ports), mostScheduled)
	var ports []int
	for port, name := range m.processor.Ports {
		if slices.ContainsFunc(cycles, func(held []int32) bool { return held[port] >= 0 }) {
			ports = append(ports, port)
			t.Columns = append(t.Columns, report.Column{Key: name, Label: name})
		}
	}
	for cycle, held := range cycles {
		row, some := []report.Value{report.Count(uint64(cycle))}, false
		for _, port := range ports {
			text := ""
			switch op := held[port]; {
			case op < 0:
			case cycle > 0 && cycles[cycle-1][port] == op:
				text = "″"
			default:
				in := &instrs[of.Ops[op].Instr]
				text = words(in.Opcode, in.Type)
			}
			some = some || text != ""
			row = append(row, report.TextOf(text))
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(cycles) == mostScheduled {
		t.Title += ", the first " + strconv.Itoa(mostScheduled) + " cycles"
	}
}

func words(opcode, of string) string {
	if of == "" {
		return opcode
	}
	return opcode + " " + of
}

// schedulingOptions returns the options for scheduling a block: its target and, if known, the
// latencies of its loads.
func (m *Models) schedulingOptions(block uint32) pipeline.Options {
	o := pipeline.Options{Target: m.program.TargetOf(block)}
	if m.memory.known {
		o.LoadLatency = func(_ int, number uint32) float64 {
			if s := m.memory.costOf(m.program, block, number); s != nil {
				return s.latency
			}
			return 0
		}
		o.FillWait = func(load, fetching pipeline.Access, between int) float64 {
			return fillWait(m.memory.costOf(m.program, block, load.Site), m.memory.costOf(m.program, block, fetching.Site), between)
		}
	}
	return o
}

// programTable returns a table of the program's totals.
func (m *Models) programTable() report.Table {
	t := report.Table{Key: "program", Title: "Program", Columns: report.Columns("name", "value")}
	cycles, instructions := m.runtime.Cycles, 0.0
	for b := range m.program.Blocks {
		instructions += m.counts.Visits[b] * float64(m.instructions(b))
	}
	add := func(name string, value report.Value) { t.Add(report.TextOf(name), value) }
	add("processor", report.TextOf(cmp.Or(m.processor.Title, m.processor.Name)))
	add("cycles", report.Real(cycles))
	if m.runtime.Seconds > 0 {
		add("milliseconds", report.Decimal(1000*m.runtime.Seconds))
	}
	add("instructions", report.Real(instructions))
	if instructions > 0 {
		add("cycles per instruction", report.Decimal(cycles/instructions))
	}
	return t
}
