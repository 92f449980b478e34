package org.mycel.digits;

/** Reads digits of 8 x 8 pixels by a network in libdigits.so. One thread at a time may use it. */
public final class Digits implements AutoCloseable {
  static {
    System.loadLibrary("digits");
  }

  private long address = open();

  /** Returns the digit that 64 pixels, each from 0 to 1, row by row, are. */
  public int read(float[] pixels) {
    return read(address, pixels);
  }

  @Override
  public void close() {
    close(address);
    address = 0;
  }

  private static native long open();

  private static native void close(long address);

  private static native int read(long address, float[] pixels);
}
