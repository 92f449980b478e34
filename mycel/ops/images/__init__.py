"""Operations over images: sizes, regions, colours, patches, suppression."""
