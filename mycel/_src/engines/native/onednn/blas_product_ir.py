"""LLVM IR that calls oneDNN's BLAS interface for matrix products, as steps of programs."""

from __future__ import annotations

__all__ = ["PRODUCT", "PRODUCT_SYMBOLS"]

PRODUCT_SYMBOLS = ("mycel_product",)

PRODUCT = r"""; words: sgemm, set_threads or 0, threads, transposed a, b, sizes m, n, k, row strides of a, b, out,
; count, bytes between matrices of a, b, out, then a, b, out
define void @mycel_product(ptr %args, i64 %begin, i64 %end) {
entry:
  %p0 = getelementptr i64, ptr %args, i64 0
  %sgemm = load ptr, ptr %p0
  %p1 = getelementptr i64, ptr %args, i64 1
  %set_threads = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %threads = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %ta = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  %tb = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %args, i64 5
  %m = load i64, ptr %p5
  %p6 = getelementptr i64, ptr %args, i64 6
  %n = load i64, ptr %p6
  %p7 = getelementptr i64, ptr %args, i64 7
  %k = load i64, ptr %p7
  %p8 = getelementptr i64, ptr %args, i64 8
  %lda = load i64, ptr %p8
  %p9 = getelementptr i64, ptr %args, i64 9
  %ldb = load i64, ptr %p9
  %p10 = getelementptr i64, ptr %args, i64 10
  %ldc = load i64, ptr %p10
  %p11 = getelementptr i64, ptr %args, i64 11
  %count = load i64, ptr %p11
  %p12 = getelementptr i64, ptr %args, i64 12
  %sa = load i64, ptr %p12
  %p13 = getelementptr i64, ptr %args, i64 13
  %sb = load i64, ptr %p13
  %p14 = getelementptr i64, ptr %args, i64 14
  %sc = load i64, ptr %p14
  %p15 = getelementptr i64, ptr %args, i64 15
  %a0 = load ptr, ptr %p15
  %p16 = getelementptr i64, ptr %args, i64 16
  %b0 = load ptr, ptr %p16
  %p17 = getelementptr i64, ptr %args, i64 17
  %c0 = load ptr, ptr %p17
  %ta8 = trunc i64 %ta to i8
  %tb8 = trunc i64 %tb to i8
  %added = icmp eq i64 %sc, 0
  %kept = select i1 %added, float 1.0, float 0.0
  %alone = icmp eq ptr %set_threads, null
  br i1 %alone, label %loop, label %team
team:
  %threads32 = trunc i64 %threads to i32
  call void %set_threads(i32 %threads32)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ 0, %team ], [ %i1, %loop ]
  %first = icmp eq i64 %i, 0
  %beta = select i1 %first, float 0.0, float %kept
  %oa = mul i64 %i, %sa
  %ob = mul i64 %i, %sb
  %oc = mul i64 %i, %sc
  %a = getelementptr i8, ptr %a0, i64 %oa
  %b = getelementptr i8, ptr %b0, i64 %ob
  %c = getelementptr i8, ptr %c0, i64 %oc
  %status = call i32 %sgemm(i8 signext %ta8, i8 signext %tb8, i64 %m, i64 %n, i64 %k, float 1.0,
      ptr %a, i64 %lda, ptr %b, i64 %ldb, float %beta, ptr %c, i64 %ldc)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %go
go:
  ret void
}
"""
