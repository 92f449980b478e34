"""`mindspore.mindrecord.tools`: readers and converters of published data sets."""
