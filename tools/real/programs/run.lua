local seed = 12345
local function rnd() seed = (seed * 1103515245 + 12345) % 2147483648; return seed end
local N = 5000
local recs = {}
for i = 1, N do recs[i] = { key = rnd(), name = "n" .. (rnd() % 100), value = rnd() } end
table.sort(recs, function(a, b) return a.key < b.key end)
local count = {}
for i = 1, N do local r = recs[i]; count[r.name] = (count[r.name] or 0) + r.value % 7 end
local list = nil
for i = 1, N do list = { next = list, record = recs[i] } end
local sum = 0
for t = 1, 20 do local l = list; while l do sum = sum + l.record.value % 13; l = l.next end end
local fib; fib = function(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end
local cl = {}
for i = 1, N do cl[i] = function() return recs[i].value end end
for i = 1, N do sum = sum + cl[i]() % 5 end
local names = {}
for k in pairs(count) do names[#names+1] = k end
table.sort(names)
local s = {}
for i = 1, #names do s[#s+1] = names[i] .. "=" .. count[names[i]] end
print(sum, fib(20), #table.concat(s, ","))
