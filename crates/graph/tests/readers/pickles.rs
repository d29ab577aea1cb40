//! A tiny Planetoid dataset as Python 2.7.18 with NumPy 1.16 and SciPy 1.2 pickled it, in protocols 0 and 2.
//!
//! `allx` is [[1,0,0],[0,2,0],[0,0,3],[1,1,0]], `tx` [[0,0,5],[7,0,0]], the classes of `ally` 0 1 0 1 and of `ty` 1 0,
//! `x` and `y` the first two rows of these, the edges 0-1, 1-2, 2-0, 3-4, 4-6. Node 5 is nowhere.

/// File names after `ind.tiny.` with their bytes, for one protocol.
pub type Files = [(&'static str, &'static [u8]); 7];

/// Protocol 0.
pub const PROTOCOL_0: Files = [
    (
        "x",
        b"ccopy_reg\n_reconstructor\np1\n(cscipy.sparse.csr\ncsr_matrix\np2\nc__builtin__\nobject\np3\nNtRp4\n(dp5\
      \nS'indices'\np6\ncnumpy.core.multiarray\n_reconstruct\np7\n(cnumpy\nndarray\np8\n(I0\ntS'b'\ntRp9\n(I1\
      \n(I2\ntcnumpy\ndtype\np10\n(S'i4'\nI0\nI1\ntRp11\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\x00\
      \\x00\\x01\\x00\\x00\\x00'\ntbsS'indptr'\np12\ng7\n(g8\n(I0\ntS'b'\ntRp13\n(I1\n(I3\ntg11\nI00\nS'\\x00\
      \\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00'\ntbsS'maxprint'\np14\nI50\nsS'_shape'\np15\n(I2\
      \nI3\ntp16\nsS'data'\np17\ng7\n(g8\n(I0\ntS'b'\ntRp18\n(I1\n(I2\ntg10\n(S'f4'\nI0\nI1\ntRp19\n(I3\nS'<'\
      \nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\x80?\\x00\\x00\\x00@'\ntbsb.",
    ),
    (
        "tx",
        b"ccopy_reg\n_reconstructor\np1\n(cscipy.sparse.csr\ncsr_matrix\np2\nc__builtin__\nobject\np3\nNtRp4\n(dp5\
      \nS'indices'\np6\ncnumpy.core.multiarray\n_reconstruct\np7\n(cnumpy\nndarray\np8\n(I0\ntS'b'\ntRp9\n(I1\
      \n(I2\ntcnumpy\ndtype\np10\n(S'i4'\nI0\nI1\ntRp11\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x02\\x00\\x00\
      \\x00\\x00\\x00\\x00\\x00'\ntbsS'data'\np12\ng7\n(g8\n(I0\ntS'b'\ntRp13\n(I1\n(I2\ntg10\n(S'f4'\nI0\nI1\
      \ntRp14\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\xa0@\\x00\\x00\\xe0@'\ntbsS'maxprint'\np15\nI5\
      0\nsS'_shape'\np16\n(I2\nI3\ntp17\nsS'indptr'\np18\ng7\n(g8\n(I0\ntS'b'\ntRp19\n(I1\n(I3\ntg11\nI00\nS'\
      \\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00'\ntbsb.",
    ),
    (
        "allx",
        b"ccopy_reg\n_reconstructor\np1\n(cscipy.sparse.csr\ncsr_matrix\np2\nc__builtin__\nobject\np3\nNtRp4\n(dp5\
      \nS'indices'\np6\ncnumpy.core.multiarray\n_reconstruct\np7\n(cnumpy\nndarray\np8\n(I0\ntS'b'\ntRp9\n(I1\
      \n(I5\ntcnumpy\ndtype\np10\n(S'i4'\nI0\nI1\ntRp11\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\x00\
      \\x00\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00'\ntbsS'data'\np12\
      \ng7\n(g8\n(I0\ntS'b'\ntRp13\n(I1\n(I5\ntg10\n(S'f4'\nI0\nI1\ntRp14\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\n\
      S'\\x00\\x00\\x80?\\x00\\x00\\x00@\\x00\\x00@@\\x00\\x00\\x80?\\x00\\x00\\x80?'\ntbsS'maxprint'\np15\nI5\
      0\nsS'_shape'\np16\n(I4\nI3\ntp17\nsS'indptr'\np18\ng7\n(g8\n(I0\ntS'b'\ntRp19\n(I1\n(I5\ntg11\nI00\nS'\
      \\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x05\\x00\\x00\\x00'\nt\
      bsb.",
    ),
    (
        "y",
        b"cnumpy.core.multiarray\n_reconstruct\np1\n(cnumpy\nndarray\np2\n(I0\ntS'b'\ntRp3\n(I1\n(I2\nI2\ntcnumpy\
      \ndtype\np4\n(S'i4'\nI0\nI1\ntRp5\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x01\\x00\\x00\\x00\\x00\\x00\\\
      x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00'\ntb.",
    ),
    (
        "ty",
        b"cnumpy.core.multiarray\n_reconstruct\np1\n(cnumpy\nndarray\np2\n(I0\ntS'b'\ntRp3\n(I1\n(I2\nI2\ntcnumpy\
      \ndtype\np4\n(S'i4'\nI0\nI1\ntRp5\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x00\\x00\\x00\\x00\\x01\\x00\\\
      x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00'\ntb.",
    ),
    (
        "ally",
        b"cnumpy.core.multiarray\n_reconstruct\np1\n(cnumpy\nndarray\np2\n(I0\ntS'b'\ntRp3\n(I1\n(I4\nI2\ntcnumpy\
      \ndtype\np4\n(S'i4'\nI0\nI1\ntRp5\n(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'\\x01\\x00\\x00\\x00\\x00\\x00\\\
      x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\
      \\x00\\x01\\x00\\x00\\x00'\ntb.",
    ),
    (
        "graph",
        b"ccollections\ndefaultdict\np1\n(c__builtin__\nlist\np2\ntRp3\nI0\n(lp4\nI1\naI2\nasI1\n(lp5\nI0\naI2\nas\
      I2\n(lp6\nI1\naI0\nasI3\n(lp7\nI4\nasI4\n(lp8\nI3\naI6\nasI6\n(lp9\nI4\nas.",
    ),
];

/// Protocol 2.
pub const PROTOCOL_2: Files = [
    (
        "x",
        b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x07indicesq\x04cnumpy.core.multiarray\n_r\
      econstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01K\x02\x85cnumpy\ndtype\nq\x08U\x02\
      i4K\x00K\x01\x87Rq\x09(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x00\x00\x00\x00\
      \x01\x00\x00\x00tbU\x06indptrq\nh\x05h\x06K\x00\x85U\x01b\x87Rq\x0b(K\x01K\x03\x85h\x09\x89U\x0c\x00\x00\
      \x00\x00\x01\x00\x00\x00\x02\x00\x00\x00tbU\x08maxprintq\x0cK2U\x06_shapeq\x0dK\x02K\x03\x86U\x04dataq\
      \x0eh\x05h\x06K\x00\x85U\x01b\x87Rq\x0f(K\x01K\x02\x85h\x08U\x02f4K\x00K\x01\x87Rq\x10(K\x03U\x01<NNNJ\
      \xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x00\x00\x80?\x00\x00\x00@tbub.",
    ),
    (
        "tx",
        b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x07indicesq\x04cnumpy.core.multiarray\n_r\
      econstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01K\x02\x85cnumpy\ndtype\nq\x08U\x02\
      i4K\x00K\x01\x87Rq\x09(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x02\x00\x00\x00\
      \x00\x00\x00\x00tbU\x04dataq\nh\x05h\x06K\x00\x85U\x01b\x87Rq\x0b(K\x01K\x02\x85h\x08U\x02f4K\x00K\x01\
      \x87Rq\x0c(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x00\x00\xa0@\x00\x00\xe0@tbU\
      \x08maxprintq\x0dK2U\x06_shapeq\x0eK\x02K\x03\x86U\x06indptrq\x0fh\x05h\x06K\x00\x85U\x01b\x87Rq\x10(K\
      \x01K\x03\x85h\x09\x89U\x0c\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00tbub.",
    ),
    (
        "allx",
        b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x07indicesq\x04cnumpy.core.multiarray\n_r\
      econstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01K\x05\x85cnumpy\ndtype\nq\x08U\x02\
      i4K\x00K\x01\x87Rq\x09(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x14\x00\x00\x00\x00\
      \x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00tbU\x04dataq\nh\x05h\x06K\x00\x85U\x01b\
      \x87Rq\x0b(K\x01K\x05\x85h\x08U\x02f4K\x00K\x01\x87Rq\x0c(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\
      \xffK\x00tb\x89U\x14\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80?\x00\x00\x80?tbU\x08maxprintq\x0dK2\
      U\x06_shapeq\x0eK\x04K\x03\x86U\x06indptrq\x0fh\x05h\x06K\x00\x85U\x01b\x87Rq\x10(K\x01K\x05\x85h\x09\
      \x89U\x14\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x05\x00\x00\x00tbub.",
    ),
    (
        "y",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01\
      K\x02K\x02\x86cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\
      \xff\xffK\x00tb\x89U\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00tb.",
    ),
    (
        "ty",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01\
      K\x02K\x02\x86cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\
      \xff\xffK\x00tb\x89U\x10\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00tb.",
    ),
    (
        "ally",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01\
      K\x04K\x02\x86cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\
      \xff\xffK\x00tb\x89U \x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00tb.",
    ),
    (
        "graph",
        b"\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(K\x00]q\x04(K\x01K\x02eK\x01\
      ]q\x05(K\x00K\x02eK\x02]q\x06(K\x01K\x00eK\x03]q\x07K\x04aK\x04]q\x08(K\x03K\x06eK\x06]q\x09K\x04au.",
    ),
];

/// `ty` as Python 3 pickles it in protocol 2: the data is a text to be encoded.
pub const TY_OF_PYTHON_3: &[u8] =
    b"\x80\x02cnumpy._core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\x85q\x02c_codecs\nencode\
      \nq\x03X\x01\x00\x00\x00bq\x04X\x06\x00\x00\x00latin1q\x05\x86q\x06Rq\x07\x87q\x08Rq\x09(K\x01K\x02K\x02\
      \x86q\ncnumpy\ndtype\nq\x0bX\x02\x00\x00\x00i4q\x0c\x89\x88\x87q\x0dRq\x0e(K\x03X\x01\x00\x00\x00<q\x0fN\
      NNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x10b\x89h\x03X\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\
      \x00\x01\x00\x00\x00\x00\x00\x00\x00q\x11h\x05\x86q\x12Rq\x13tq\x14b.";
