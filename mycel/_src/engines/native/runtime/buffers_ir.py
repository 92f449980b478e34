"""Buffers in LLVM IR: CPython capsules of 64-byte aligned memory from `allocator_ir`."""

from __future__ import annotations

__all__ = ["BUFFERS"]

BUFFERS = r"""
define void @mycel_drop_arena(ptr %program) {
  %w11 = getelementptr i64, ptr %program, i64 11
  %kept = load ptr, ptr %w11
  %have = icmp ne ptr %kept, null
  br i1 %have, label %drop, label %done
drop:
  store ptr null, ptr %w11
  call void @release(ptr %kept)
  br label %done
done:
  ret void
}

define internal void @destroy(ptr %capsule) {
  %owner = call ptr @PyCapsule_GetContext(ptr %capsule)
  %data = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %own = icmp eq ptr %owner, null
  br i1 %own, label %mine, label %theirs
mine:
  call void @release(ptr %data)
  ret void
theirs:
  call void @Py_DecRef(ptr %owner)
  ret void
}

define internal ptr @new_capsule(i64 %bytes) {
  %data = call ptr @allocate(i64 %bytes)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %out, label %ok
ok:
  %capsule = call ptr @PyCapsule_New(ptr %data, ptr null, ptr @destroy)
  ret ptr %capsule
out:
  %e = call ptr @PyErr_NoMemory()
  ret ptr null
}

define ptr @mycel_new_buffer(ptr %self, ptr %args, i64 %count) {
  %a = load ptr, ptr %args
  %bytes = call i64 @PyLong_AsSsize_t(ptr %a)
  %bad = icmp slt i64 %bytes, 0
  br i1 %bad, label %error, label %ok
ok:
  %capsule = call ptr @new_capsule(i64 %bytes)
  ret ptr %capsule
error:
  %occurred = call ptr @PyErr_Occurred()
  %set = icmp eq ptr %occurred, null
  br i1 %set, label %memory, label %out
memory:
  %e = call ptr @PyErr_NoMemory()
  br label %out
out:
  ret ptr null
}

define ptr @mycel_wrap(ptr %self, ptr %args, i64 %count) {
  %owner = load ptr, ptr %args
  %s1 = getelementptr ptr, ptr %args, i64 1
  %a = load ptr, ptr %s1
  %data = call ptr @PyLong_AsVoidPtr(ptr %a)
  %capsule = call ptr @PyCapsule_New(ptr %data, ptr null, ptr @destroy)
  %failed = icmp eq ptr %capsule, null
  br i1 %failed, label %out, label %ok
ok:
  call void @Py_IncRef(ptr %owner)
  %r = call i32 @PyCapsule_SetContext(ptr %capsule, ptr %owner)
  br label %out
out:
  ret ptr %capsule
}

define ptr @mycel_address(ptr %self, ptr %args, i64 %count) {
  %c = load ptr, ptr %args
  %p = call ptr @PyCapsule_GetPointer(ptr %c, ptr null)
  %bad = icmp eq ptr %p, null
  br i1 %bad, label %out, label %ok
ok:
  %r = call ptr @PyLong_FromVoidPtr(ptr %p)
  ret ptr %r
out:
  ret ptr null
}

; args: capsule, and 0 to 4 for a float, double, 32-bit or 64-bit integer or boolean that it begins with
define ptr @mycel_number(ptr %self, ptr %args, i64 %count) {
  %c = load ptr, ptr %args
  %p = call ptr @PyCapsule_GetPointer(ptr %c, ptr null)
  %bad = icmp eq ptr %p, null
  br i1 %bad, label %out, label %ok
ok:
  %s1 = getelementptr ptr, ptr %args, i64 1
  %k = load ptr, ptr %s1
  %kind = call i64 @PyLong_AsSsize_t(ptr %k)
  switch i64 %kind, label %truth [ i64 0, label %single i64 1, label %double i64 2, label %word i64 3, label %long ]
single:
  %f = load float, ptr %p
  %fd = fpext float %f to double
  %r0 = call ptr @PyFloat_FromDouble(double %fd)
  ret ptr %r0
double:
  %d = load double, ptr %p
  %r1 = call ptr @PyFloat_FromDouble(double %d)
  ret ptr %r1
word:
  %w = load i32, ptr %p
  %wl = sext i32 %w to i64
  %r2 = call ptr @PyLong_FromLongLong(i64 %wl)
  ret ptr %r2
long:
  %l = load i64, ptr %p
  %r3 = call ptr @PyLong_FromLongLong(i64 %l)
  ret ptr %r3
truth:
  %b = load i8, ptr %p
  %set = icmp ne i8 %b, 0
  %bl = zext i1 %set to i64
  %r4 = call ptr @PyBool_FromLong(i64 %bl)
  ret ptr %r4
out:
  ret ptr null
}
"""
