//go:build arm64 && !purego

#include "textflag.h"

// Vector instructions on four float32 that the assembler of Go 1.26 does not
// know by name; the operands are register numbers.

// FADD Vd.4S, Vn.4S, Vm.4S
#define FADD4(d, n, m) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))

// FMUL Vd.4S, Vn.4S, Vm.4S
#define FMUL4(d, n, m) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))

// FMLA Vd.4S, Vn.4S, Vm.S[0], and the same for elements 1, 2 and 3 of Vm
#define FMLA40(d, n, m) WORD $(0x4F801000 | (m)<<16 | (n)<<5 | (d))
#define FMLA41(d, n, m) WORD $(0x4FA01000 | (m)<<16 | (n)<<5 | (d))
#define FMLA42(d, n, m) WORD $(0x4F801800 | (m)<<16 | (n)<<5 | (d))
#define FMLA43(d, n, m) WORD $(0x4FA01800 | (m)<<16 | (n)<<5 | (d))

// func dotNEON(a, b *float32, n int) float32
//
// V0 to V7 are the 32 partial sums. FMUL and FADD stay apart: fusing them would
// change the bits.
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+16(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	SUBS $32, R2, R2
	BLT  eights

blocks: // of 32 elements; R2 is what is left less 32
	VLD1.P 64(R0), [V8.S4, V9.S4, V10.S4, V11.S4]
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R0), [V12.S4, V13.S4, V14.S4, V15.S4]
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4]
	FMUL4(8, 8, 16)
	FMUL4(9, 9, 17)
	FMUL4(10, 10, 18)
	FMUL4(11, 11, 19)
	FMUL4(12, 12, 20)
	FMUL4(13, 13, 21)
	FMUL4(14, 14, 22)
	FMUL4(15, 15, 23)
	FADD4(0, 0, 8)
	FADD4(1, 1, 9)
	FADD4(2, 2, 10)
	FADD4(3, 3, 11)
	FADD4(4, 4, 12)
	FADD4(5, 5, 13)
	FADD4(6, 6, 14)
	FADD4(7, 7, 15)
	SUBS   $32, R2, R2
	BGE    blocks

eights: // up to three blocks of 8 elements, to V0 and V1, V2 and V3, V4 and V5
	ADD    $32, R2, R2
	CMP    $8, R2
	BLT    reduce
	VLD1.P 32(R0), [V8.S4, V9.S4]
	VLD1.P 32(R1), [V16.S4, V17.S4]
	FMUL4(8, 8, 16)
	FMUL4(9, 9, 17)
	FADD4(0, 0, 8)
	FADD4(1, 1, 9)
	SUB    $8, R2, R2
	CMP    $8, R2
	BLT    reduce
	VLD1.P 32(R0), [V8.S4, V9.S4]
	VLD1.P 32(R1), [V16.S4, V17.S4]
	FMUL4(8, 8, 16)
	FMUL4(9, 9, 17)
	FADD4(2, 2, 8)
	FADD4(3, 3, 9)
	SUB    $8, R2, R2
	CMP    $8, R2
	BLT    reduce
	VLD1.P 32(R0), [V8.S4, V9.S4]
	VLD1.P 32(R1), [V16.S4, V17.S4]
	FMUL4(8, 8, 16)
	FMUL4(9, 9, 17)
	FADD4(4, 4, 8)
	FADD4(5, 5, 9)
	SUB    $8, R2, R2

reduce:
	FADD4(0, 0, 2)
	FADD4(1, 1, 3)
	FADD4(4, 4, 6)
	FADD4(5, 5, 7)
	FADD4(0, 0, 4)
	FADD4(1, 1, 5)
	FADD4(0, 0, 1)      // elements 4 apart
	VEXT  $8, V0.B16, V0.B16, V1.B16
	FADD4(0, 0, 1)      // 2 apart
	VEXT  $4, V0.B16, V0.B16, V1.B16
	FADD4(0, 0, 1)      // 1 apart
	CBZ   R2, done

ones: // up to 7 elements
	FMOVS.P 4(R0), F1
	FMOVS.P 4(R1), F2
	FMULS   F2, F1, F1
	FADDS   F1, F0, F0
	SUBS    $1, R2, R2
	BNE     ones

done:
	FMOVS F0, ret+24(FP)
	RET

// func productsNEON(dst *Block, a, b *float32, dim int)
//
// Four passes, each of 4 vectors of a with all 16 of b. V0 to V15 are the sums,
// four registers for each vector of a.
TEXT ·productsNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD dim+24(FP), R3
	MOVD $64, R8
	MOVD $4, R4

pass:
	MOVD R1, R5
	MOVD R2, R6
	MOVD R3, R7
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V10.B16, V10.B16, V10.B16
	VEOR V11.B16, V11.B16, V11.B16
	VEOR V12.B16, V12.B16, V12.B16
	VEOR V13.B16, V13.B16, V13.B16
	VEOR V14.B16, V14.B16, V14.B16
	VEOR V15.B16, V15.B16, V15.B16
	CBZ  R7, store

elements:
	VLD1   (R5), [V16.S4]
	VLD1.P 64(R6), [V17.S4, V18.S4, V19.S4, V20.S4]
	FMLA40(0, 17, 16)
	FMLA40(1, 18, 16)
	FMLA40(2, 19, 16)
	FMLA40(3, 20, 16)
	FMLA41(4, 17, 16)
	FMLA41(5, 18, 16)
	FMLA41(6, 19, 16)
	FMLA41(7, 20, 16)
	FMLA42(8, 17, 16)
	FMLA42(9, 18, 16)
	FMLA42(10, 19, 16)
	FMLA42(11, 20, 16)
	FMLA43(12, 17, 16)
	FMLA43(13, 18, 16)
	FMLA43(14, 19, 16)
	FMLA43(15, 20, 16)
	ADD    R8, R5, R5
	SUBS   $1, R7, R7
	BNE    elements

store:
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R0)
	VST1.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R0)
	ADD    $16, R1, R1
	SUBS   $1, R4, R4
	BNE    pass
	RET
