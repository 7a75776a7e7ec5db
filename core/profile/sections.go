package profile

// This file lists the sections of the binary format. A new section needs an entry in the list
// forms, a field of [Profile], and a type with two methods. The method "code" both encodes and
// decodes the payload. [Profile.Check] calls the method "check", which returns an error if damaged
// counts could cause a failure. footprint.go is an example. Describe the payload below and in
// site/docs/sgp.md.

// The binary format (.sgp). Integers are unsigned LEB128 varints ("uv") unless stated otherwise. A
// list is encoded as its length followed by its elements.
//
//	magic    8 bytes   89 53 47 50 0d 0a 1a 0a
//	version  uv        5; 6 if a set table omits numbers of sets
//	sections           until END.
//	  tag      4 bytes ASCII
//	  length   uv
//	  payload  length bytes
//	  check    4 bytes little-endian CRC-32C of tag, length and payload
//
//	INPT  format (length, bytes); flags: 1 threads, 2 PCs, 4 sizes, 8 threads in
//	      order by slices of time only; kinds; skip; limit; 0, or 1 + list of threads
//	TOTL  references of the 6 kinds (4 in version 1); bytes of the same kinds;
//	      unselected; bad records; 0, or 1 + list of threads
//	STAT  0 complete or 1 partial; reason (length, bytes)
//	SAMP  only if counts are estimates: mode; seed; threshold; most lines; gap; on;
//	      period; references read; list of line sizes, each: line bytes; threshold;
//	      accesses analysed; samples; lines; censored; list of (low, high)
//	PRED  only if threads were synthesised: cores; how (length, bytes)
//	LOCA  line bytes; list of kinds, each: kind; cold; histogram, which is a list
//	      of (distance - previous distance, from -1; count)
//	WIND  line bytes; references a window; first window; list of rows, each a
//	      mask of the bins that are not zero, then their counts; the distinct
//	      lines of each row, if they were counted
//	SETS  line bytes; for 2^0 to 2^16 sets each a mask of the depths from 0 to 31
//	      that occur, then their counts; if some were omitted, a mask of these
//	      numbers of sets. Follows the windows of its line size
//	SITE  line bytes; flags: 1 data objects, 2 previous sites of lines; list of
//	      (capacity in lines, ways or 0); list of strings; later fields are their indices;
//	      list of sites, each: mask of the fields that differ from the previous
//	      site, then their values: number - (previous + 1, or previous if that was 2^32 - 1), as
//	      all differences modulo 2^32; zigzag PC, offset, line and column -
//	      previous; kind and bytes xor previous; module; function; file; type;
//	      variable. (The first site is compared with a site of number 2^32 - 1 and zeros.)
//	      Mask of the strides that occur, then their counts; reuse;
//	      list of objects, each: kind; number + 1 modulo 2^32; name; function;
//	      file; line; blocks; bytes; references; reuse.
//	      Reuse: cold; list of (bin - (previous + 1), count); for each capacity
//	      lines fetched, bytes used; list of (site - (previous + 1), count)
//	CNTR  flags: 1 blocks, 2 instructions, 4 touched bytes; number of counters;
//	      list of strings; later fields are their indices;
//	      list of functions, each: number - (previous + 1); name; file; line;
//	      invocations; unique bytes; counts;
//	      list of basic blocks, each: number - (previous + 1); function + 1, 0 for
//	      none; label; file; first line; last line; executions; counts;
//	      list of tallies, each: kind; name; lanes; size; count; bytes;
//	      unique bytes; bytes for 5 %, … 100 % of accesses.
//	      Counts are a mask of the counters that are not zero, then their values.
//	SHAR  line bytes; list of cores, each: list of thread - (previous + 1); counts
//	      of the private stack; of these, counts of foreign lines; counts of the
//	      coherent stack; histogram of coherence misses; invalidations; and list of
//	      domains, each: list of core - (previous + 1); of each of these cores cold;
//	      histogram; and the five changes; rows as in SETS; counts of foreign lines.
//	      Counts are cold; histogram; rows as in SETS
//	SCOH  flags: 1 utilisation; of each site and object in SITE, its accesses on the
//	      coherent stacks of cores: cold; list of (bin - (previous + 1), count) of
//	      distances; the same list of coherence misses, by the depth at which the line
//	      was lost; with utilisation, for each capacity lines fetched into private
//	      caches, bytes used
//	COMM  number of threads that are counted together as the 64th; list of granularities, each: bytes;
//	      list of flows; granules, references and events of each of the 5 classes;
//	      list of pairs, each: producer; consumer; object; events; transfers;
//	      references a window; list of windows, each: list of flows;
//	      list of owned objects, each: object; log2 of the bytes of a part; first
//	      part; list of parts, each: references; where there are any, first and most
//	      frequent thread; readers; writers; class; references of the latter;
//	      list of falsely shared lines, each: object; two sites; offset; two
//	      threads; lines; events; misses; bytes apart;
//	      0, or 1 + list of distances between two threads: from; to; histogram of
//	      events; of transfers.
//	      A flow is from; to; events; transfers. Sites and objects are their indices
//	      + 1 in SITE, or 0
//	LOOP  the loop-compressed trace, in the format of package loops; empty if it grew too large
//	BLCK  how often blocks ran, with the program, in the format of package blocks; empty if the trace has no blocks
//	FOOT  line bytes; accesses; distinct lines; list of absences of lines by length, in ranges that
//	      begin at FootprintWindow: their number; the sum of their lengths
//	CALL  flags: 1 coherent stacks; list of strings; later fields are their indices; list of
//	      call paths, each: index of its caller; function; file; line; calls; calls of itself;
//	      calls of its caller's function; instructions; references; bytes; cold;
//	      list of (bin - (previous + 1), count); with coherent stacks cold and two such
//	      lists, as in SCOH
//	TIME  references a window; first window; list of windows, each: list of
//	      (key - (previous + 1), count). A key is, from its highest bits: 0 site, 1 object,
//	      2 call path; 32 bits, its index in SITE or CALL; 2 bits: 0 the stack of the trace,
//	      1 coherent stacks, 2 coherence misses; 7 bits: the bin, or 124 for first
//	      accesses. List of threads in TOTL, if there are several, each: its
//	      accesses in each window
//	DATA  line bytes; references a column of maps; list of strings; later fields are their indices;
//	      list of structures, each: name; bytes; list of members, each: name; offset; bytes;
//	      type; list of data structures, each: index in SITE - (previous + 1); blocks released,
//	      kept, and their bytes; most bytes at once; list of (bin - (previous + 1), count) of
//	      lifetimes; longest; blocks never read; of these, released; bytes never read; never
//	      written; list of elements, each: structure - (previous + 1); visits; list of visits by
//	      offset in the line; of each member, and of the rest, loads; stores; visits; cold; list of
//	      (bin - (previous + 1), count); of each pair of members visits to both; and a map: bytes
//	      of a row; rows; list of cells, each: 64 column + row - (previous + 1); list of
//	      (class of distances - (previous + 1), count)
//	REGN  1 if there are too many regions, otherwise 0; the gap below which regions are joined;
//	      list of strings, which are their index below; list of marked regions, each: name;
//	      thread; depth; first reference - previous, as a difference modulo 2^64; references;
//	      regions joined; references between them
//	smpi  confidence intervals of a sample: half-widths, or (low, high); each list has its own
//	      length: of each core in SHAR 0, or 1 + list of (low, high) of its private
//	      misses; of coherent ones; first accesses; coherence misses; invalidations;
//	      of each member of its domains list of (low, high); of each site and object
//	      in SITE, and then in SCOH, list of (bin, half); for COMM 0, or 1 + for each flow events and
//	      transfers, and for each class granules, references and events, granularity
//	      by granularity; events and transfers of each pair; and lines, events and
//	      misses of false sharing
//	page  list of page sizes, each: page bytes; page accesses; cold; histogram, as in LOCA, of
//	      the distances from 8
//	pref  of each site in SITE: cold accesses that a prefetcher covers; list of
//	      (bin - (previous + 1), count) of these accesses
//	srcs  list of source files, each: name; text, compressed like the tables of a .sgt
//	segm  start; list of line sizes, each: list of first touches
//	      (reference - previous, zigzag line - previous, kind); list of lines
//	      of the stack (zigzag line - previous); where they were counted, for
//	      each line size the list of lists of distinct lines of larger windows
//	segs  lines, strides and blocks of memory, in the format of package analysis/sites
//	segt  how often each byte was accessed, in the format of package analysis/counters
//	segh  the stacks of cores and domains, in the format of package analysis/sharing
//	segc  values in words and lines and their users, in the format of package
//	      analysis/communication
//	coml  line sharing: number, then of each object, offset, lines, owners, moves,
//	      ping-pongs, apart, two sites and two threads
//	comx  why there is no COMM: a number of Absence
//	segb  the calls of threads, in the format of package analysis/branches
//	segp  the samplers, in the format of package analysis/sample/estimate
//	segk  analyses of the sampled lines, in the format of package analysis/sample/estimate
//	segf  positions of the stacks in the spill store, in the format of package stack
//	segl  when lines were last used, in the format of package analysis/footprint
//	segd  blocks of memory, visits to elements and the stack, in the format of package
//	      analysis/structures
//	segr  marked regions, and where they end, in the format of package analysis/regions
//	segg  stacks of pages, in the format of package analysis/pages
//	segw  moves of sites to other lines, in the format of package analysis/sites
//	END.  32 bytes: the digest
//
// A section whose tag begins with a lower-case letter is optional: readers may skip it, and the
// digest does not cover it. The digest is the SHA-256 of the tags, lengths and payloads of all
// other sections before END. Sections are always written in the order above. Sections with the same
// tag are in the order of their line sizes.
//
// For example, a profile of two accesses to one line, read from a din trace, begins with
//
//	89 53 47 50 0d 0a 1a 0a  05
//	49 4e 50 54 09           INPT, 9 bytes
//	  03 64 69 6e              format "din"
//	  00 37 00 00 00           no flags; all data references; nothing skipped,
//	                           no limit, all threads
//	xx xx xx xx              check

// sectionForm defines how the sections with certain tags are written and read. The digest covers
// these sections.
type sectionForm struct {
	tags    []string
	repeats bool                                   // a profile may contain the section several times
	write   func(p *Profile, w *writer)            // writes all sections with these tags
	read    func(p *Profile, tag string, c *coder) // reads one of these sections
	check   func(p *Profile) error                 // checks invariants of the content; nil: there are none
}

// onceForm returns the sectionForm of a section that occurs at most once in a profile.
func onceForm(tag string, has func(p *Profile) bool, code func(p *Profile, c *coder)) sectionForm {
	return sectionForm{
		tags: []string{tag},
		write: func(p *Profile, w *writer) {
			if has(p) {
				w.section(tag, func(c *coder) { code(p, c) })
			}
		},
		read: func(p *Profile, _ string, c *coder) { code(p, c) },
	}
}

func always(*Profile) bool { return true }

// optionalForm returns the sectionForm for a field that may be nil. The method "check" of the field
// checks the invariants of its content, which may depend on other fields of the profile.
func optionalForm[T any, P interface {
	*T
	code(c *coder)
	check(p *Profile) error
}](tag string, field func(p *Profile) **T) sectionForm {
	f := onceForm(tag, func(p *Profile) bool { return *field(p) != nil }, func(p *Profile, c *coder) {
		if c.Reads() {
			*field(p) = new(T)
		}
		P(*field(p)).code(c)
	})
	return checkedForm(f, func(p *Profile) error {
		if *field(p) == nil {
			return nil
		}
		return P(*field(p)).check(p)
	})
}

func checkedForm(f sectionForm, check func(p *Profile) error) sectionForm {
	f.check = check
	return f
}

// rawForm returns the sectionForm of a section whose payload is the content of a byte slice, which
// may be nil.
func rawForm(tag string, field func(p *Profile) *[]byte) sectionForm {
	return sectionForm{
		tags: []string{tag},
		write: func(p *Profile, w *writer) {
			if payload := *field(p); payload != nil {
				w.putSection(tag, payload)
			}
		},
		read: func(p *Profile, _ string, c *coder) { *field(p) = c.raw() },
	}
}

// forms lists the sections that the digest covers, in the order of the file. The first onceSections
// sections of this list are mandatory.
var forms = []sectionForm{
	onceForm("INPT", always, func(p *Profile, c *coder) { p.Input.code(c) }),
	onceForm("TOTL", always, func(p *Profile, c *coder) { p.Totals.code(c) }),
	onceForm("STAT", always, func(p *Profile, c *coder) { p.State.code(c) }),
	optionalForm("SAMP", func(p *Profile) **Sampled { return &p.Sampled }),
	optionalForm("PRED", func(p *Profile) **Predicted { return &p.Predicted }),
	{tags: []string{"LOCA", "WIND", "SETS"}, repeats: true, write: (*Profile).writeLocality, read: (*Profile).readLocality, check: (*Profile).checkLocalities},
	optionalForm("SITE", func(p *Profile) **Sites { return &p.Sites }),
	optionalForm("CNTR", func(p *Profile) **Counters { return &p.Counters }),
	{tags: []string{"SHAR"}, repeats: true, write: func(p *Profile, w *writer) {
		for i := range p.Sharing {
			w.section("SHAR", p.Sharing[i].code)
		}
	}, read: func(p *Profile, _ string, c *coder) {
		if n := len(p.Sharing); n > 0 {
			c.above = p.Sharing[n-1].LineBytes
		}
		p.Sharing = append(p.Sharing, Sharing{})
		s := &p.Sharing[len(p.Sharing)-1]
		s.code(c)
		if l := p.LocalityAt(s.LineBytes); l != nil && l.Sets != nil {
			s.dropSetCounts(l.Sets.Omitted)
		}
	}, check: (*Profile).checkSharing},
	checkedForm(onceForm("SCOH", func(p *Profile) bool { return p.Sites != nil && p.Sites.Coherent != nil }, (*Profile).codeCoherent), (*Profile).checkCoherent),
	optionalForm("COMM", func(p *Profile) **Communication { return &p.Communication }),
	rawForm("LOOP", func(p *Profile) *[]byte { return &p.Loops }),
	rawForm("BLCK", func(p *Profile) *[]byte { return &p.Blocks }),
	optionalForm("FOOT", func(p *Profile) **Footprint { return &p.Footprint }),
	optionalForm("CALL", func(p *Profile) **Calls { return &p.Calls }),
	optionalForm("TIME", func(p *Profile) **Timeline { return &p.Timeline }),
	optionalForm("DATA", func(p *Profile) **Data { return &p.Data }),
	optionalForm("REGN", func(p *Profile) **Regions { return &p.Regions }),
}

const onceSections = 3

// stateForm defines the section that contains the state of one analysis in a segment.
type stateForm struct {
	tag   string
	field func(s *Segment) *[]byte
}

// states lists the optional sections that contain the states of analyses, in the order of the file.
var states = []stateForm{
	{"segs", func(s *Segment) *[]byte { return &s.Sites }},
	{"segt", func(s *Segment) *[]byte { return &s.Touched }},
	{"segh", func(s *Segment) *[]byte { return &s.Sharing }},
	{"segc", func(s *Segment) *[]byte { return &s.Communication }},
	{"segb", func(s *Segment) *[]byte { return &s.Blocks }},
	{"segp", func(s *Segment) *[]byte { return &s.Sample }},
	{"segk", func(s *Segment) *[]byte { return &s.Kept }},
	{"segf", func(s *Segment) *[]byte { return &s.Shelved }},
	{"segl", func(s *Segment) *[]byte { return &s.LastUses }},
	{"segd", func(s *Segment) *[]byte { return &s.Structures }},
	{"segr", func(s *Segment) *[]byte { return &s.Regions }},
	{"segg", func(s *Segment) *[]byte { return &s.Pages }},
	{"segw", func(s *Segment) *[]byte { return &s.Moves }},
}

func (p *Profile) writeLocality(w *writer) {
	for i := range p.Locality {
		w.inPieces("LOCA", p.Locality[i].code)
		w.section("WIND", p.Locality[i].codeWindows)
		if p.Locality[i].Sets != nil {
			w.section("SETS", p.Locality[i].codeSets)
		}
	}
}

// readLocality reads one of the three sections of a line size: histograms, windows or set tables.
// The sections must be in this order.
func (p *Profile) readLocality(tag string, c *coder) {
	n := len(p.Locality)
	if tag == "LOCA" {
		if n > 0 {
			c.above = p.Locality[n-1].LineBytes
		}
		p.Locality = append(p.Locality, Locality{})
		p.Locality[n].code(c)
		return
	}
	if n == 0 {
		c.In.Fail("windows or set tables precede the first histogram")
		return
	}
	l := &p.Locality[n-1]
	windows := tag == "WIND"
	switch {
	case windows && l.Windows.References != 0 || !windows && l.Sets != nil:
		c.In.Fail("the profile has the windows or the set tables of a line size twice")
	case windows:
		l.codeWindows(c)
	default:
		c.Check(l.Windows.References != 0, "set tables and the preceding windows have different line sizes")
		l.Sets = new(SetTable)
		l.codeSets(c)
	}
}
