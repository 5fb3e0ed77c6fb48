package bench

// Puts is what clients that put jobs got from a server or a cluster, as clusterbench saves it.
type Puts struct {
	Contender string  `json:"contender"` // whose servers they are
	Clients   int     `json:"clients"`
	Rate      Spread  `json:"puts_per_second"`
	Ratio     Spread  `json:"ratio"`  // of the rates of a round, to the first contender
	P50       float64 `json:"p50_ns"` // median of the rounds, as are the others
	P99       float64 `json:"p99_ns"`
	CPU       float64 `json:"cpu_ns"` // of all servers, for a put
}
