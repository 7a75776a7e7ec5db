package measured

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// Sample is one sampled load or store.
type Sample struct {
	Event    string
	Function string // "" if unknown
	Source   string // the source line as FILE:LINE; "" if unknown
	Thread   uint32
	Addr     trace.Addr // the address of the data
	Code     trace.Addr // the address of the instruction; 0 if unknown
	Data     DataSource
	Period   uint64 // number of events for which the sample stands
	Cycles   uint64 // latency; 0 if unknown
}

// columnWidth is the width of a column of numbers in the output of perf script. A symbol follows
// its address after only one space, so the width distinguishes the number add from the function add.
const columnWidth = 16

// reader reads the output of perf script.
type reader struct {
	samples  []Sample
	skipped  int               // number of samples without a data source
	without  string            // the event of the first sample without a data source
	texts    map[string]string // names, so that each name is stored only once
	complete bool              // the instruction of the last sample is known, so frames that follow are its callers
	open     bool              // the next lines belong to the last sample
}

// readSamples reads the output of perf script. Samples without a data source are skipped. An error
// is returned if no sample has a data source.
func readSamples(name string, text []byte) ([]Sample, int, error) {
	r := reader{texts: map[string]string{}}
	for number, line := range lines.All(text) {
		if wrong := r.line(line); wrong != nil {
			wrong.SetPlace(name, number)
			return nil, 0, wrong
		}
	}
	const how = "; record with \"perf mem record\" or \"perf c2c record\", and print with \"perf script\""
	switch {
	case len(r.samples) > 0:
		return onlyMemory(r.samples), r.skipped, nil
	case r.skipped > 0:
		return nil, 0, &Error{name + ": the samples of the event " + r.without + " contain no data source, so it is unknown which cache served them" + how}
	}
	return nil, 0, &Error{name + ": the file contains neither samples of perf script nor counts of perf stat -x, likwid-perfctr -O or CSV" + how}
}

// spe is the event of perf that contains each record of Arm's SPE once. Other events, such as
// l1d-miss, repeat some of these records.
const spe = "memory"

func onlyMemory(samples []Sample) []Sample {
	isMemory := func(s Sample) bool { return s.Event == spe }
	if !slices.ContainsFunc(samples, isMemory) {
		return samples
	}
	return slices.DeleteFunc(samples, func(s Sample) bool { return !isMemory(s) })
}

// hasSample reports whether a text contains a sample, with or without a data source.
func hasSample(text []byte) bool {
	for _, line := range lines.All(text) {
		if _, _, ok := cutEvent(line, &Sample{}); ok {
			return true
		}
	}
	return false
}

func (r *reader) line(line []byte) *trace.SyntaxError {
	if line = bytes.TrimRight(line, "\r"); lines.IsBlank(line) || line[0] == '#' {
		r.open = false
		return nil
	}
	var s Sample
	event, rest, ok := cutEvent(line, &s)
	if !ok {
		if r.open {
			r.detail(line)
		}
		return nil
	}
	s.Event = r.text(event)
	r.open = false
	before, words, found := bytes.Cut(rest, []byte(" |OP "))
	at := bytes.LastIndexByte(before, ' ') + 1
	value, _, isHex := lines.Hex(before[at:])
	s.Data = DataSource(value)
	if !found || !isHex || s.Data.Op() == "" {
		r.skipped++
		if r.without == "" {
			r.without = s.Event
		}
		return nil
	}
	address, _ := lines.Cut(lines.Trim(before[:at]))
	if len(address) == 0 {
		return lines.Wrong("sample", line, "the address of the data; print it with \"perf script -F +addr\"")
	}
	var wrong *trace.SyntaxError
	if s.Addr, wrong = lines.HexAddress(address); wrong != nil {
		return wrong
	}
	r.columns(words, &s)
	r.samples = append(r.samples, s)
	r.open = true
	return nil
}

// cutEvent reads the beginning of a sample: the command's name, the thread, the time, the period and
// the event. The command's name may contain spaces, and the thread may be followed by the processor.
//
//	app  8152/8153 [001] 67345.201426:          1 cpu/mem-loads,ldlat=30/P:     7f9608a00000 …
func cutEvent(line []byte, s *Sample) (event, rest []byte, ok bool) {
	hasThread := false
	field, rest := cutField(line)
	for ; !hasThread || !isTime(field); field, rest = cutField(rest) {
		if len(field) == 0 {
			return nil, nil, false
		}
		if field[0] == '[' && field[len(field)-1] == ']' {
			continue // the processor
		}
		number := field[bytes.IndexByte(field, '/')+1:] // without the process
		n, wrong := lines.Decimal32("thread", number)
		hasThread, s.Thread = wrong == nil, n
	}
	s.Period = 1
	field, rest = cutField(rest)
	if n, isNumber := lines.Decimal(field); isNumber {
		s.Period = max(n, 1)
		field, rest = cutField(rest)
	}
	event, ok = bytes.CutSuffix(field, []byte(":"))
	return event, rest, ok && len(event) > 0
}

// cutField splits text after its first field. The rest keeps its blanks, because they show the
// width of a column.
func cutField(text []byte) (field, rest []byte) {
	text = bytes.TrimLeft(text, " \t")
	end := bytes.IndexAny(text, " \t")
	if end < 0 {
		return text, nil
	}
	return text[:end], text[end:]
}

// isTime reports whether a field is a time in seconds, such as 67345.201426: with its colon.
func isTime(field []byte) bool {
	seconds, found := bytes.CutSuffix(field, []byte(":"))
	whole, fraction, dot := bytes.Cut(seconds, []byte("."))
	_, a := lines.Decimal(whole)
	_, b := lines.Decimal(fraction)
	return found && dot && a && b
}

// columns reads what follows the data source: its words, which perf may have cut off, then columns
// of decimal numbers, of which the first is the latency, and then the instruction.
func (r *reader) columns(text []byte, s *Sample) {
	var numbers [][]byte
	for {
		word, rest := cutField(text)
		_, _, isHex := lines.Hex(word)
		width := len(text) - len(rest)
		if isHex && width >= columnWidth {
			numbers = append(numbers, word)
		} else if len(word) == 0 || len(numbers) > 0 {
			break // the symbol of the instruction, or the end
		}
		text = rest
	}
	// The last number is the address of the instruction if a symbol follows, or if it is too long for
	// the 16-bit parts of the latency. With call chains, the address is on the next line.
	if n := len(numbers); n > 0 && (!lines.IsBlank(text) || n > 1 && len(numbers[n-1]) > 5) {
		s.Code, _, _ = lines.Hex(numbers[n-1])
		s.Function = r.text(symbol(text))
		numbers = numbers[:n-1]
	}
	if len(numbers) > 0 {
		s.Cycles, _ = lines.Decimal(numbers[0])
	}
	r.complete = s.Code != 0
}

// detail reads a line that follows a sample: a frame of the call chain, or the source line of the
// frame before it.
func (r *reader) detail(line []byte) {
	s := &r.samples[len(r.samples)-1]
	word, rest := lines.Cut(lines.Trim(line))
	code, _, isHex := lines.Hex(word)
	switch {
	case isHex && !r.complete:
		s.Code, s.Function, r.complete = code, r.text(symbol(rest)), true
	case isHex:
		r.open = false // a caller
	case s.Source == "" && isSource(word) && len(rest) == 0:
		s.Source = r.text(word)
	}
}

// isSource reports whether a word has the form FILE:LINE.
func isSource(word []byte) bool {
	at := bytes.LastIndexByte(word, ':')
	if at <= 0 {
		return false
	}
	n, ok := lines.Decimal(word[at+1:])
	return ok && n > 0
}

// symbol returns the function in the text after an address, without the offset and the program:
// "walk+0x16 (/home/user/app)".
func symbol(text []byte) []byte {
	if at := bytes.LastIndex(text, []byte(" (")); at >= 0 {
		text = text[:at]
	}
	if at := bytes.LastIndex(text, []byte("+0x")); at >= 0 {
		if _, _, ok := lines.Hex(text[at+3:]); ok {
			text = text[:at]
		}
	}
	if text = lines.Trim(text); string(text) == "[unknown]" {
		return nil
	}
	return text
}

func (r *reader) text(b []byte) string {
	s, known := r.texts[string(b)]
	if !known {
		s = strings.ToValidUTF8(string(b), "\uFFFD")
		r.texts[string(b)] = s
	}
	return s
}

// name identifies the code of a sample: the source line, the function or the address.
func (s *Sample) name(byFunction bool) (function, source string) {
	function = s.Function
	if function == "" && s.Code != 0 {
		function = "0x" + strconv.FormatUint(s.Code, 16)
	}
	if byFunction {
		return function, ""
	}
	return function, s.Source
}

// threshold returns the least latency, in cycles, of the loads that the event samples, or 0 if the
// event samples all loads. perf writes this parameter into the event's name.
func (s *Sample) threshold() uint64 {
	_, after, found := strings.Cut(s.Event, "ldlat=")
	if !found {
		return 0
	}
	end := 0
	for end < len(after) && after[end] >= '0' && after[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseUint(after[:end], 10, 64)
	return n
}
