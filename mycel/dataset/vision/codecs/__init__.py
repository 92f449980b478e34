"""Files of images and videos, decoded and encoded."""
