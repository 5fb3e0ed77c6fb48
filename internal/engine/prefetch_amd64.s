//go:build !purego

#include "textflag.h"

// func prefetch(j *job)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ j+0(FP), AX
	PREFETCHT0 (AX)
	RET
