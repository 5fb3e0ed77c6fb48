//go:build !purego

#include "textflag.h"

// func prefetch(j *job)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD j+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET
