package export

import (
	"strconv"

	"github.com/stackglass/stackglass/core/report"
)

// page is HTML in the making.
type page struct{ b []byte }

// raw appends markup as it is.
func (p *page) raw(parts ...string) {
	for _, part := range parts {
		p.b = append(p.b, part...)
	}
}

// element appends a tag, with its attributes, around text.
func (p *page) element(tag, text string) {
	name := tag
	for i := range tag {
		if tag[i] == ' ' {
			name = tag[:i]
			break
		}
	}
	p.raw("<", tag, ">", report.EscapeHTML(text), "</", name, ">\n")
}

// number writes a coordinate: to a tenth.
func number(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// style is the page's look (the colours and the type of the interactive one).
// Colours are pairs that were checked: text 4.5:1, graphics 3:1.
const style = `
:root{color-scheme:light dark;--ground:#fafaf8;--paper:#fff;--ink:#1b1e22;--second:#555d67;--hair:#e2e4e7;--grid:#ebedef;--accent:#0b5cad;
--level1:#0072b2;--level2:#c2500a;--level3:#00795a;--level4:#6b7280;--heat:11,92,173;--note:#7a5b00;--noteground:#fdf6df}
@media (prefers-color-scheme:dark){:root{--ground:#121518;--paper:#181c20;--ink:#e9ebee;--second:#a2abb6;--hair:#2a3037;--grid:#20262c;--accent:#76b3f5;
--level1:#5ab4f0;--level2:#f59555;--level3:#4cc9a0;--level4:#9aa3ae;--heat:118,179,245;--note:#e5c766;--noteground:#2a2513}}
@media print{:root{color-scheme:light;--ground:#fff;--paper:#fff;--ink:#000;--second:#444;--hair:#bbb;--grid:#ddd;--accent:#0b5cad;
--level1:#0072b2;--level2:#c2500a;--level3:#00795a;--level4:#6b7280;--heat:11,92,173;--note:#000;--noteground:#fff}
.note{border:1px solid #444}h2,figure,caption,tr{break-inside:avoid}h2,caption{break-after:avoid}.wide{overflow:visible}.wide svg{min-width:0}}
*{box-sizing:border-box}
html{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;background:var(--ground);color:var(--ink)}
body{margin:0 auto;max-width:72rem;padding:2rem;overflow-wrap:break-word}
h1{font-size:22px;line-height:1.25;margin:0}
h2{font-size:17px;margin:2.7rem 0 .5rem;padding-top:.8rem;border-top:1px solid var(--hair)}
p{margin:.5rem 0;max-width:60rem}
.second,footer{color:var(--second);font-size:14px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.5rem 1.5rem;margin:1rem 0}
.facts div{min-width:0}.facts .long{grid-column:span 2}.long dd{font-size:12px;line-height:22px}dt{color:var(--second);font-size:13px}dd{margin:0;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.note{background:var(--noteground);color:var(--note);padding:.5rem .8rem;margin:1rem 0;font-size:14px}.note p{margin:.25rem 0;max-width:none}
figure{margin:.5rem 0}figcaption{color:var(--second);font-size:14px;max-width:60rem}
svg{display:block;width:100%;min-width:44rem;height:auto;font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
svg text{fill:var(--ink)}svg .axis{fill:var(--second)}svg .grid{stroke:var(--grid);stroke-width:1}svg .base{stroke:var(--hair);stroke-width:1}
svg .curve{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}svg .bar{fill:var(--accent)}svg .cold{fill:var(--level4)}
svg .halo{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.8rem 0}
caption{text-align:left;color:var(--second);padding:.2rem 0;font-size:13px}
th,td{padding:.2rem .9rem .2rem 0;border-bottom:1px solid var(--hair);text-align:left;vertical-align:top;font-weight:400;overflow-wrap:normal}
thead th{color:var(--second);vertical-align:bottom;border-bottom-color:var(--second)}
.n{text-align:right;white-space:nowrap}
.heat th,.heat td{white-space:nowrap}.heat b{font-weight:600}.heat td{padding:.2rem .6rem;text-align:right;border:1px solid var(--ground)}.heat th{padding-right:.9rem;text-align:right}
footer{margin-top:3rem;padding-top:.8rem;border-top:1px solid var(--hair)}
`
