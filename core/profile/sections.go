package profile

// This file lists the sections of the binary form. A new one needs an entry here, a field
// of [Profile] and the method that describes its payload for both directions; encode.go
// documents it.

// form is how a section of the digest is written and read. A section that a profile has
// once at most has field, or has and code; others have write and read.
type form struct {
	tags []string
	// field is the payload as it is, nil where there is none.
	field func(p *Profile) *[]byte
	// has reports whether a profile has the section. code writes it, or makes and reads it.
	has  func(p *Profile) bool
	code func(p *Profile, c *coder)
	// write writes all sections with these tags, which take turns. read reads one.
	write func(p *Profile, w *writer)
	read  func(p *Profile, tag string, c *coder)
}

func always(*Profile) bool { return true }

// made returns what a section is read into, which is new, or written from.
func made[T any](c *coder, field **T) *T {
	if c.Reads() {
		*field = new(T)
	}
	return *field
}

// forms are those of the sections that the digest covers, in their order. The first
// onceSections have to be there.
var forms = []form{
	{tags: []string{"INPT"}, has: always, code: func(p *Profile, c *coder) { p.Input.code(c) }},
	{tags: []string{"TOTL"}, has: always, code: func(p *Profile, c *coder) { p.Totals.code(c) }},
	{tags: []string{"STAT"}, has: always, code: func(p *Profile, c *coder) { p.State.code(c) }},
	{
		tags: []string{"SAMP"}, has: func(p *Profile) bool { return p.Sampled != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Sampled).code(c) },
	},
	{
		tags: []string{"PRED"}, has: func(p *Profile) bool { return p.Predicted != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Predicted).code(c) },
	},
	{tags: []string{"LOCA", "WIND", "SETS"}, write: (*Profile).writeLocality, read: (*Profile).readLocality},
	{
		tags: []string{"SITE"}, has: func(p *Profile) bool { return p.Sites != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Sites).code(c) },
	},
	{
		tags: []string{"CNTR"}, has: func(p *Profile) bool { return p.Counters != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Counters).code(c) },
	},
	{tags: []string{"SHAR"}, write: (*Profile).writeSharing, read: (*Profile).readSharing},
	{
		tags: []string{"SCOH"}, has: func(p *Profile) bool { return p.Sites != nil && p.Sites.Coherent != nil },
		code: func(p *Profile, c *coder) {
			if c.Check(p.Sites != nil, "coherent stacks of sites without sites"); p.Sites != nil {
				made(c, &p.Sites.Coherent)
				p.Sites.codeCoherent(c)
			}
		},
	},
	{
		tags: []string{"COMM"}, has: func(p *Profile) bool { return p.Communication != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Communication).code(c) },
	},
	{tags: []string{"LOOP"}, field: func(p *Profile) *[]byte { return &p.Loops }},
	{tags: []string{"BLCK"}, field: func(p *Profile) *[]byte { return &p.Blocks }},
	{
		tags: []string{"FOOT"}, has: func(p *Profile) bool { return p.Footprint != nil },
		code: func(p *Profile, c *coder) { made(c, &p.Footprint).code(c) },
	},
}

const onceSections = 3

// stateForm is where a section's payload is kept.
type stateForm struct {
	tag   string
	field func(s *Segment) *[]byte
}

// states are the optional sections of what analyses keep in a segment, in their order.
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
}

// writeTo writes the section, if p has it.
func (f *form) writeTo(w *writer, p *Profile) {
	switch {
	case f.write != nil:
		f.write(p, w)
	case f.field != nil:
		if payload := *f.field(p); payload != nil {
			w.put(f.tags[0], payload)
		}
	case f.has(p):
		w.section(f.tags[0], func(c *coder) { f.code(p, c) })
	}
}

// readFrom reads one section with that tag.
func (f *form) readFrom(p *Profile, tag string, c *coder) {
	switch {
	case f.read != nil:
		f.read(p, tag, c)
	case f.field != nil:
		*f.field(p) = c.raw()
	default:
		f.code(p, c)
	}
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

// readLocality reads the histograms of a line size, its windows or, behind these, its set
// tables.
func (p *Profile) readLocality(tag string, c *coder) {
	n := len(p.Locality)
	if tag == "LOCA" {
		if n > 0 {
			c.above = p.Locality[n-1].LineBytes
		}
		p.Locality = append(p.Locality, Locality{}) // few, so that a small file cannot ask for many
		p.Locality[n].code(c)
		return
	}
	if n == 0 {
		c.In.Fail("windows or set tables before any histogram")
		return
	}
	l := &p.Locality[n-1]
	windows := tag == "WIND"
	switch {
	case windows && l.Windows.References != 0 || !windows && l.Sets != nil:
		c.In.Fail("the windows or set tables of a line size again")
	case windows:
		l.codeWindows(c)
	default:
		c.Check(l.Windows.References != 0, "set tables of another line size than the windows before them")
		l.Sets = new(SetTable)
		l.codeSets(c)
	}
}

func (p *Profile) writeSharing(w *writer) {
	for i := range p.Sharing {
		w.section("SHAR", p.Sharing[i].code)
	}
}

func (p *Profile) readSharing(_ string, c *coder) {
	if n := len(p.Sharing); n > 0 {
		c.above = p.Sharing[n-1].LineBytes
	}
	p.Sharing = append(p.Sharing, Sharing{})
	p.Sharing[len(p.Sharing)-1].code(c)
}
