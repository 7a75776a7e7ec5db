package ui

// The explanations that the page shows with its charts.
const (
	helpCurve = "The curve shows the share of all line accesses that miss in a fully associative LRU cache, at every cache size. " +
		"The curve follows from the exact stack distances: an access hits in a cache of C lines if fewer than C other lines were used since the last access to the same line. " +
		"Real caches are divided into sets. The card of each level shows the effect of its associativity, and names the method of calculation."
	helpHistogram = "The stack distance of an access is the number of other lines used since the last access to the same line. " +
		"The first access to a line is cold and has no distance. Bins double in width; the table lists every distance. " +
		"The line above the bars shows the running sum of the bars. At distance d, the running sum is the hit ratio of a cache of d + 1 lines."
	helpPlace = "The bars show the stack distances of the accesses at this source location. A stack distance counts all other lines, whether this code or other code used them. " +
		"An access misses in a fully associative LRU cache if its stack distance is greater than or equal to the number of lines in the cache. The bins of all source locations add up to the histogram in Locality."
	helpWorking = "The run is divided into windows with equal numbers of references. Each point is the number of distinct lines accessed in a window, multiplied by the line size. " +
		"This is exactly Denning's working set, for disjoint windows."
	helpTime = "The run is divided into windows with equal numbers of references. Each point is the share of a window's accesses that miss in a fully associative LRU cache. Each curve is for one cache size. " +
		"The cache keeps its contents from one window to the next. Plateaus and steps of the curves indicate phases of the program."
	helpSets = "A cache of S sets and W ways keeps each line in the set that the low bits of the line number select, and evicts the least recently used of that set's W lines. " +
		"The map shows exact counts for every such cache up to 65\u202f536 sets and 32 ways. Caches along a dashed line have the same size, with fewer sets and more ways towards the lower right. " +
		"There are three kinds of misses: cold (first accesses to a line), capacity (the other misses of a fully associative cache of the same size) and conflict (the additional misses that sets cause; this number is negative if sets keep lines that LRU over all lines would have evicted)."
	helpRates = "Each curve shows the share of all accesses that hit in one level or in a level above it, for 1, 2, 4 … cores and for the chosen number of cores. Solid: simulated, level by level, with coherent private caches. " +
		"Dashed: the stack distance cache model (SDCM) of PPT-SASMM for the same threads. SDCM computes its estimates from a sample of lines, from all accesses, or from windows (sampled executions of blocks). Bands are 95 % confidence intervals for the result that SDCM would compute from all accesses. Errors in the synthesised threads affect both methods."
	helpSpeedUp = "The curve shows the speed-up over one core. The time of a block is the number of cycles that the block takes on the chosen processor, with the latencies of the simulated caches. " +
		"The table lists the losses: serial work, waiting for the slowest core, repeated work, caches, and memory bandwidth."
	helpCores = "Each curve is for one thread, and shows the share of its accesses that miss in a fully associative LRU cache, at every cache size. " +
		"The private stack contains only the thread's own accesses. On the coherent stack, another thread's store removes the line and leaves a hole (Schuff's model): the next access to this line is a coherence miss at every cache size. " +
		"The shared stack contains the accesses of all threads, in the order of the trace. All three curves are exact."
	helpFlows = "Rows are the threads that write values, and columns are the threads that use these values. An event is a reference to a word, line or page whose last writer is another thread; " +
		"a transfer is the first load of a value since another thread wrote it. The bytes of all transfers are the minimum amount of data that must move between threads. For lines and pages, a reference also counts as an event if the other thread wrote a different word of the same line or page. All counts are exact, in the order of the trace."
	helpMap = "The map shows the line accesses to the data structure by address and time. Addresses are offsets from the lowest address, and time is counted in references of the run. " +
		"A miss is counted in a fully associative LRU cache of the level's size. To zoom in, drag over a part of the map or press +. Press Esc to see the whole map."
	helpOwners = "The data structure is divided into equal parts. The upper row shows the thread that touched each part first: many systems place the part in memory near this thread. The lower row shows the thread that accesses the part most often (after Kulkarni and others). " +
		"Numbers, colours and hatching identify threads."
	helpFootprint = "The footprint is the number of distinct lines accessed in a window, multiplied by the line size. Each value is the exact mean over all windows of the given length in the run " +
		"(Xiang and others, 2011). A window fills a cache when the footprint of the window is as large as the cache. In a shared cache, the footprint is the space that the program occupies."
)
